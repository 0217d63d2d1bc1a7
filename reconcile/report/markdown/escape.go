package markdown

import (
	"html"
	"regexp"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// Untrusted text is shown unchanged if no git host could interpret it, and as code otherwise. Git hosts do not
// interpret markup, mentions, references, links or emoji in code.

// plain matches text that contains nothing that git hosts interpret: no markup, no HTML, and none of the characters @,
// #, &, !, $, %, ~ and ^ that references contain.
var plain = regexp.MustCompile(`^[A-Za-z0-9(][A-Za-z0-9 .,;:()'"/?=+-]*$`)

// looked matches text that git hosts interpret even in plain text: links, emoji, references by prefix or commit hash,
// rules, and list numbers.
var looked = regexp.MustCompile(`(?i)://|www\.|:[^ ]|\bgh[a-z]*-|\b[0-9a-f]{7,}\b|---|^[0-9]+[.)]`)

// mark is the beginning of an HTML comment. Pipelines find their earlier comment by an HTML comment, so untrusted text
// must not contain one.
const mark = "<!--"

// text escapes s so that a line of Markdown shows it literally. s is first shortened to at most the given number of
// bytes. The result is never empty.
func text(s string, most int) string {
	s = short(s, most)
	if plain.MatchString(s) && !looked.MatchString(s) && !strings.HasSuffix(s, " ") {
		return s
	}
	return code(s)
}

// cell is like text, but for a table cell. In a table, a pipe ends a cell even in code, unless it is escaped with a
// backslash. A backslash followed by a pipe cannot be shown in a cell, so a space is inserted between them.
func cell(s string, most int) string {
	return strings.ReplaceAll(strings.ReplaceAll(text(s, most), `\|`, `\ |`), "|", `\|`)
}

// code formats a single line of text as a code span.
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
		return "`-`" // an empty code span is impossible
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") ||
		strings.HasPrefix(s, " ") && strings.HasSuffix(s, " ") {
		s = " " + s + " " // these spaces are not shown
	}
	return fence + s + fence
}

// inHTML formats a text within a line of HTML, where Markdown is not interpreted.
func inHTML(s string, most int) string {
	s = short(s, most)
	if plain.MatchString(s) && !looked.MatchString(s) {
		return html.EscapeString(s)
	}
	return "<code>" + html.EscapeString(breakUp(s)) + "</code>"
}

func breakUp(s string) string { return strings.ReplaceAll(s, mark, "<! --") }

// short converts any text to one printable line of at most the given number of bytes. Longer text is cut in the middle.
func short(s string, most int) string {
	s = printable.Line(s)
	if len(s) <= most {
		return s
	}
	const gap = " … "
	start, end := s[:most*3/4], s[len(s)-most/4+len(gap):]
	return printable.Line(strings.ToValidUTF8(start, "") + gap + strings.ToValidUTF8(end, ""))
}
