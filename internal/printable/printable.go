// Package printable makes untrusted text safe for terminals, logs and reports.
package printable

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

// Is reports whether s can be shown unchanged.
func Is(s string) bool { return !strings.ContainsFunc(s, isInvisible) }

// IsFileName reports whether name is a safe file name. It rejects names that git can store but legitimate repositories
// do not contain: names that are paths, and names that would garble a report.
func IsFileName(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Base(name) == name && IsPath(name)
}

// IsPath reports whether a path can be shown unchanged and has the same meaning on every platform. The meaning of a
// path with a backslash depends on the platform.
func IsPath(name string) bool { return Is(name) && !strings.Contains(name, `\`) }

// Text escapes, as Go does, characters that a terminal would interpret or not show.
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

// blanks contains characters that are shown as spaces although Unicode does not classify them as spaces: a braille
// pattern without dots, a Khitan filler and a musical symbol.
const blanks = "\u2800\U00016fe4\U0001d159"

// isInvisible reports whether a terminal may interpret a character or not show it. Some letters and marks are invisible
// although Go counts them as printable, such as Hangul fillers and variation selectors.
func isInvisible(r rune) bool {
	return r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune(blanks, r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Longest is the maximum length of a Line, in bytes.
const Longest = 8 << 10

// Line converts s to a single line that a terminal shows unchanged and a CI system treats as plain text. It escapes
// control and invisible characters as Go does, breaks up commands such as ##vso[…] and ::error::, and removes the
// middle of long text. Line is idempotent.
func Line(s string) string {
	s = Text(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s))
	for strings.Contains(s, "##") { // ### contains ## twice
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

// Short is like Line, but truncates the result to at most the given number of bytes. It is idempotent.
func Short(s string, most int) string {
	s = Line(s)
	if len(s) <= most {
		return s
	}
	const gap = "…"
	return strings.ToValidUTF8(s[:most-len(gap)], "") + gap
}

// JSON escapes invisible characters and CI commands in a JSON document without changing its meaning.
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
