// Package visible makes text of strangers fit for terminals, logs and reports.
package visible

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"
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
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isInvisible(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
