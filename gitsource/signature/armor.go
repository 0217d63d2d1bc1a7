package signature

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

type format string

// The signature formats known to git, by the words in their armor. X.509 is recognized, but cannot be verified.
const (
	formatPGP  format = "PGP SIGNATURE"
	formatSSH  format = "SSH SIGNATURE"
	formatX509 format = "SIGNED MESSAGE"
)

var (
	errSeveral = errors.New("it has several signatures; only one can be verified")
	errX509    = errors.New("it is signed with an X.509 certificate (S/MIME, gitsign), which is not supported; sign " +
		"with PGP or SSH")
	errNoEnd  = errors.New("its signature is truncated")
	errFormat = errors.New("its signature is neither a PGP nor an SSH signature")
	errAfter  = errors.New("it has content after its signature")
)

func begin(kind string) string { return "-----BEGIN " + kind + "-----" }

// isBegin reports whether text starts with one of the lines that, for git, begin a signature in a tag.
func isBegin(text []byte) bool {
	for _, kind := range []string{string(formatPGP), "PGP MESSAGE", string(formatX509), string(formatSSH)} {
		if bytes.HasPrefix(text, []byte(begin(kind))) {
			return true
		}
	}
	return false
}

// formatOf returns the format of a single armored signature, which must be the whole text. Armor parsers skip
// surrounding text, so it is rejected here. Empty lines may follow, because GitHub adds an empty line.
func formatOf(text []byte) (format, error) {
	lines := strings.Split(strings.TrimRight(string(text), " \n"), "\n")
	found := format("")
	for _, known := range []format{formatPGP, formatSSH, formatX509} {
		if lines[0] == begin(string(known)) {
			found = known
		}
	}
	last := len(lines) - 1
	end := slices.Index(lines, "-----END "+string(found)+"-----")
	checksum := slices.IndexFunc(lines, isChecksum)
	switch {
	case found == formatX509:
		return "", errX509
	case found == "":
		return "", errFormat
	case slices.ContainsFunc(lines[1:], func(line string) bool { return strings.HasPrefix(line, "-----BEGIN ") }):
		return "", errSeveral
	case end < 0:
		return "", errNoEnd
	case end < last, checksum >= 0 && checksum < last-1:
		return "", errAfter
	}
	return found, nil
}

// isChecksum reports whether line is the checksum before the end of a PGP armor: = and four characters. A parser
// ignores everything after the checksum.
func isChecksum(line string) bool { return len(line) == 5 && line[0] == '=' }
