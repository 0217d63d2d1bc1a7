// Package visible makes text of strangers fit for terminals, logs and reports.
package visible

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Is says whether all of s can be shown as it is.
func Is(s string) bool { return !strings.ContainsFunc(s, isInvisible) }

// IsFileName refuses what git can store and no honest repository holds: names that are paths,
// and names that would garble a report.
func IsFileName(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Base(name) == name && IsPath(name)
}

// IsPath says whether a path can be shown as it is, and means the same everywhere: without
// backslashes.
func IsPath(name string) bool { return Is(name) && !strings.Contains(name, `\`) }

// Text writes what a terminal would obey, or not show, as Go does.
func Text(s string) string {
	if Is(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isInvisible(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isInvisible(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// Longest is how many bytes a Line has at most.
const Longest = 8 << 10

// Line makes of any text one line that a terminal shows as it is and a CI system takes for nothing
// but text: what it would obey or not show is written as Go does, commands such as ##vso[…] and
// ::error:: are broken up, and what is too long is cut in the middle. Doing it twice changes
// nothing.
func Line(s string) string {
	s = Text(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s))
	for strings.Contains(s, "##") { // ### has two
		s = strings.ReplaceAll(s, "##", "# #")
	}
	if start := strings.TrimLeft(s, " "); strings.HasPrefix(start, "::") {
		s = ": " + start[1:]
	}
	if len(s) <= Longest {
		return s
	}
	const gap = " … "
	start, end := s[:Longest*3/4], s[len(s)-Longest/4+len(gap):]
	return strings.ToValidUTF8(start, "") + gap + strings.ToValidUTF8(end, "")
}

// Short is the beginning of a Line, of so many bytes at most. Doing it twice changes nothing.
func Short(s string, most int) string {
	s = Line(s)
	if len(s) <= most {
		return s
	}
	const gap = "…"
	return strings.ToValidUTF8(s[:most-len(gap)], "") + gap
}

// JSON writes what is not visible in a document of JSON, or is a command to a CI system, as
// escapes, which mean the same.
func JSON(document []byte) []byte {
	out := make([]byte, 0, len(document))
	before := rune(0)
	for _, r := range string(document) {
		switch {
		case r != '\n' && isInvisible(r) || r == '#' && before == '#':
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, "\\u%04x", unit)
			}
		default:
			out = utf8.AppendRune(out, r)
		}
		before = r
	}
	return out
}
