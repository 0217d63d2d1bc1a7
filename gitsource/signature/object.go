package signature

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// maxBytes is the maximum size of a commit or tag, far above the size of an honest commit, even a merge of many signed
// tags.
const maxBytes = 1 << 20

// signed is the exact content that was signed, and its armored signature, which may be empty.
type signed struct{ payload, signature []byte }

type tagObject struct {
	signed
	name, target string
}

// header is a header with its continuation lines: raw[start:end]. Its value starts at from, after the name and a space,
// and ends before a newline.
type header struct {
	name             string
	start, from, end int
}

var (
	sha1Hex    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	headerName = regexp.MustCompile(`^[!-~]+$`)
)

var errAmbiguous = errors.New("it is ambiguous")

func ambiguous(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errAmbiguous, fmt.Sprintf(format, args...))
}

// parseHeaders returns the headers and the start of the message.
func parseHeaders(raw []byte) (headers []header, body int, err error) {
	if len(raw) > maxBytes {
		return nil, 0, fmt.Errorf("it is larger than %d KiB", maxBytes>>10)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, 0, ambiguous("it contains a NUL byte")
	}
	for start := 0; ; {
		length := bytes.IndexByte(raw[start:], '\n')
		if length < 0 {
			return nil, 0, ambiguous("its headers do not end with an empty line")
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
			return nil, 0, ambiguous("one of its header lines is not a valid header")
		default:
			headers = append(headers, header{name: string(name), start: start, from: start + len(name) + 1, end: end})
		}
		start = end + 1
	}
}

// line returns the value of a single-line header.
func (h header) line(raw []byte) (string, error) {
	value := raw[h.from:h.end]
	if bytes.IndexByte(value, '\n') >= 0 {
		return "", ambiguous("its header %s has more than one line", h.name)
	}
	return string(value), nil
}

// hash returns the value of a header that names an object.
func (h header) hash(raw []byte) (string, error) {
	value, err := h.line(raw)
	if err == nil && !sha1Hex.MatchString(value) {
		err = ambiguous("its header %s is not a hash", h.name)
	}
	return value, err
}

// commitHeaders lists the headers that every commit has, in order. There may be any number of parents.
var commitHeaders = []string{"tree", "parent", "author", "committer"}

// parseCommit splits a commit into payload and signature, as git does: everything except the header gpgsig was signed.
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
			return signed{}, ambiguous("its header %s is duplicated or out of place", h.name)
		case h.name == "gpgsig-sha256":
			return signed{}, ambiguous("it has the signature of a SHA-256 repository (gpgsig-sha256)")
		case h.name == "gpgsig" && i+1 < len(extra) && extra[i+1].name == "gpgsig":
			return signed{}, errSeveral
		case h.name == "gpgsig" && i+1 < len(extra):
			return signed{}, ambiguous("it has a header after the signature")
		case h.name == "gpgsig":
			return signed{
				payload:   slices.Concat(raw[:h.start], raw[h.end+1:]),
				signature: bytes.ReplaceAll(raw[h.from:h.end], []byte("\n "), []byte("\n")),
			}, nil
		}
	}
	return signed{payload: raw}, nil
}

// checkCommitHeaders checks the headers that every commit has, and returns the other headers.
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

// parseTag splits a tag object into payload and signature, as git does: the signature is the end of the message, and
// everything before it was signed.
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
		return tagObject{}, ambiguous("its header object is not a hash")
	case values[1] == "tag":
		return tagObject{}, errors.New("it is a tag of a tag; if signatures are verified, a tag must point to a commit")
	case values[1] != "commit":
		return tagObject{}, errors.New("it does not point to a commit")
	}
	at := startOfSignature(raw, body)
	tag.signed = signed{payload: raw[:at], signature: raw[at:]}
	return tag, nil
}

// startOfSignature returns the start of the first line that begins a signature, or the end of raw. Git uses the last
// such line and treats everything before it as content; Quorate later rejects a second signature instead.
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
