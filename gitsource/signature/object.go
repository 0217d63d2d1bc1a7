package signature

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// maxBytes of a commit or of a tag: far over what an honest one needs, merges of many signed tags
// included.
const maxBytes = 1 << 20

// signed is what was signed, byte for byte, and the armored signature over it, empty if there is
// none.
type signed struct{ payload, signature []byte }

type tagObject struct {
	signed
	name, target string
}

// header is one header with its continuation lines: raw[start:end], where the value starts after
// the name and a space, and ends before a newline.
type header struct {
	name             string
	start, from, end int
}

var (
	sha1Hex    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	headerName = regexp.MustCompile(`^[!-~]+$`)
)

var errAmbiguous = errors.New("it can be read in more than one way")

func ambiguous(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errAmbiguous, fmt.Sprintf(format, args...))
}

// parseHeaders finds the headers, and where the message starts.
func parseHeaders(raw []byte) (headers []header, body int, err error) {
	if len(raw) > maxBytes {
		return nil, 0, fmt.Errorf("it is larger than %d KiB", maxBytes>>10)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, 0, ambiguous("there is a NUL byte in it")
	}
	for start := 0; ; {
		length := bytes.IndexByte(raw[start:], '\n')
		if length < 0 {
			return nil, 0, ambiguous("no empty line ends its headers")
		}
		end := start + length
		line := raw[start:end]
		name, _, found := bytes.Cut(line, []byte(" "))
		switch {
		case len(line) == 0:
			return headers, end + 1, nil
		case line[0] == ' ' && len(headers) > 0:
			headers[len(headers)-1].end = end
		case !found || !headerName.Match(name):
			return nil, 0, ambiguous("a line among its headers is none")
		default:
			headers = append(headers, header{name: string(name), start: start, from: start + len(name) + 1, end: end})
		}
		start = end + 1
	}
}

// line returns the value of a header of one line.
func (h header) line(raw []byte) (string, error) {
	value := raw[h.from:h.end]
	if bytes.IndexByte(value, '\n') >= 0 {
		return "", ambiguous("its header %s has more than one line", h.name)
	}
	return string(value), nil
}

// hash returns the value of a header that is the name of an object.
func (h header) hash(raw []byte) (string, error) {
	value, err := h.line(raw)
	if err == nil && !sha1Hex.MatchString(value) {
		err = ambiguous("its header %s is no hash", h.name)
	}
	return value, err
}

// commitHeaders are those that every commit has, in their order; of parents there are any number.
var commitHeaders = []string{"tree", "parent", "author", "committer"}

// parseCommit takes the signature out of a commit, as git does: what was signed is all but the
// header gpgsig.
func parseCommit(raw []byte) (signed, error) {
	headers, _, err := parseHeaders(raw)
	if err != nil {
		return signed{}, err
	}
	extra, err := checkCommitHeaders(raw, headers)
	if err != nil {
		return signed{}, err
	}
	for i, h := range extra {
		switch {
		case slices.Contains(commitHeaders, h.name):
			return signed{}, ambiguous("its header %s is there twice, or out of place", h.name)
		case h.name == "gpgsig-sha256":
			return signed{}, ambiguous("it has the signature of a repository with SHA-256 (gpgsig-sha256)")
		case h.name == "gpgsig" && i+1 < len(extra) && extra[i+1].name == "gpgsig":
			return signed{}, errSeveral
		case h.name == "gpgsig" && i+1 < len(extra):
			return signed{}, ambiguous("there is a header after the signature")
		case h.name == "gpgsig":
			return signed{
				payload:   slices.Concat(raw[:h.start], raw[h.end+1:]),
				signature: bytes.ReplaceAll(raw[h.from:h.end], []byte("\n "), []byte("\n")),
			}, nil
		}
	}
	return signed{payload: raw}, nil
}

// checkCommitHeaders checks the headers that every commit has, and returns the others.
func checkCommitHeaders(raw []byte, headers []header) (extra []header, err error) {
	next := func(name string) bool {
		if len(headers) == 0 || headers[0].name != name || err != nil {
			return false
		}
		if name == "tree" || name == "parent" {
			_, err = headers[0].hash(raw)
		} else {
			_, err = headers[0].line(raw)
		}
		headers = headers[1:]
		return true
	}
	ok := next("tree")
	for next("parent") {
	}
	ok = ok && next("author") && next("committer")
	if err == nil && !ok {
		err = ambiguous("its headers are not tree, parents, author and committer, in this order")
	}
	return headers, err
}

// parseTag takes the signature out of a tag object, as git does: it is the end of the message, and
// all before it was signed.
func parseTag(raw []byte) (tagObject, error) {
	headers, body, err := parseHeaders(raw)
	if err != nil {
		return tagObject{}, err
	}
	var names, values []string
	for _, h := range headers {
		value, err := h.line(raw)
		if err != nil {
			return tagObject{}, err
		}
		names, values = append(names, h.name), append(values, value)
	}
	if !slices.Equal(names, []string{"object", "type", "tag", "tagger"}) {
		return tagObject{}, ambiguous("its headers are not object, type, tag and tagger, in this order")
	}
	tag := tagObject{target: values[0], name: values[2]}
	switch {
	case !sha1Hex.MatchString(tag.target):
		return tagObject{}, ambiguous("its header object is no hash")
	case values[1] == "tag":
		return tagObject{}, errors.New("it is a tag of a tag; where signatures are verified, a tag is of a commit")
	case values[1] != "commit":
		return tagObject{}, errors.New("it is not of a commit")
	}
	at := startOfSignature(raw, body)
	tag.signed = signed{payload: raw[:at], signature: raw[at:]}
	return tag, nil
}

// startOfSignature is where the first line that starts a signature starts; the end, if there is
// none. git takes the last, and lets whatever is before it be content; a second one is refused
// later.
func startOfSignature(raw []byte, body int) int {
	for at := body; at < len(raw); {
		if isBegin(raw[at:]) {
			return at
		}
		length := bytes.IndexByte(raw[at:], '\n')
		if length < 0 {
			break
		}
		at += length + 1
	}
	return len(raw)
}
