package markdown

import (
	"html"
	"regexp"
	"strings"

	"quorate.dev/quorate/visible"
)

// Words of strangers are shown as they are where no forge could take them for anything else, and as code otherwise:
// in code neither markup nor mentions, references, links or emoji are looked for.

// plain has nothing in it that a forge looks for: no markup, no @, #, &, !, $, %, ~ or ^ of a reference, no HTML.
var plain = regexp.MustCompile(`^[A-Za-z0-9(][A-Za-z0-9 .,;:()'"/?=+-]*$`)

// looked is what forges look for all the same: links, emoji, references by a prefix or by the hash of a commit, rules,
// and the numbers of lists.
var looked = regexp.MustCompile(`(?i)://|\bwww\.|:[^ ]|\bgh[a-z]*-|\b[0-9a-f]{7,}\b|---|^[0-9]+[.)]`)

// mark is how a comment of HTML begins. By one a pipeline finds what it has written before, so nobody else has it.
const mark = "<!--"

// text makes of any text one that reads as it is within a line of markdown, and has at most so many bytes, but for
// what escapes it. It is never empty.
func text(s string, most int) string {
	s = short(s, most)
	if plain.MatchString(s) && !looked.MatchString(s) && !strings.HasSuffix(s, " ") {
		return s
	}
	return code(s)
}

// cell is text within a table, where a pipe ends a cell even in code, unless there is a backslash before it. Nothing
// shows a backslash and a pipe there, so there is a space between these.
func cell(s string, most int) string {
	return strings.ReplaceAll(strings.ReplaceAll(text(s, most), `\|`, `\ |`), "|", `\|`)
}

// code shows a text, on one line, as a span of code.
func code(s string) string {
	s = breakUp(s)
	fence, run := "`", 0
	for _, r := range s + " " {
		if r == '`' {
			run++
			continue
		}
		if run >= len(fence) {
			fence = strings.Repeat("`", run+1)
		}
		run = 0
	}
	if strings.Trim(s, " ") == "" {
		return "`-`" // there is no span of nothing
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") ||
		strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " " // which do not show
	}
	return fence + s + fence
}

// inHTML shows a text within a line of HTML, where no markdown is looked for.
func inHTML(s string, most int) string {
	s = short(s, most)
	if plain.MatchString(s) && !looked.MatchString(s) {
		return html.EscapeString(s)
	}
	return "<code>" + html.EscapeString(breakUp(s)) + "</code>"
}

func breakUp(s string) string { return strings.ReplaceAll(s, mark, "<! --") }

// short makes of any text one visible line of at most so many bytes, cut in the middle.
func short(s string, most int) string {
	s = visible.Line(s)
	if len(s) <= most {
		return s
	}
	const gap = " … "
	start, end := s[:most*3/4], s[len(s)-most/4+len(gap):]
	return visible.Line(strings.ToValidUTF8(start, "") + gap + strings.ToValidUTF8(end, ""))
}
