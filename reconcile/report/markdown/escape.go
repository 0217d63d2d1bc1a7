package markdown

import (
	"html"
	"regexp"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// Untrusted text is shown as it is if no git host could interpret it, and as code otherwise. Git hosts do not interpret
// markup, mentions, references, links or emoji in code.

// plain matches text without anything that git hosts interpret: no markup, no @, #, &, !, $, %, ~ or ^ of a reference,
// no HTML.
var plain = regexp.MustCompile(`^[A-Za-z0-9(][A-Za-z0-9 .,;:()'"/?=+-]*$`)

// looked matches text that git hosts interpret even in plain text: links, emoji, references by prefix or commit hash,
// rules, and list numbers.
var looked = regexp.MustCompile(`(?i)://|\bwww\.|:[^ ]|\bgh[a-z]*-|\b[0-9a-f]{7,}\b|---|^[0-9]+[.)]`)

// mark is the beginning of an HTML comment. A pipeline finds its earlier comment by one, so untrusted text must not
// contain it.
const mark = "<!--"

// text escapes any text so that a line of Markdown shows it literally, shortened to most bytes before escaping. It is
// never empty.
func text(s string, most int) string {
	s = short(s, most)
	if plain.MatchString(s) && !looked.MatchString(s) && !strings.HasSuffix(s, " ") {
		return s
	}
	return code(s)
}

// cell is text within a table, where a pipe ends a cell even in code, unless it is escaped with a backslash. A
// backslash followed by a pipe cannot be shown there, so a space is inserted between them.
func cell(s string, most int) string {
	return strings.ReplaceAll(strings.ReplaceAll(text(s, most), `\|`, `\ |`), "|", `\|`)
}

// code formats a text, on one line, as a code span.
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

// short converts any text to one printable line of at most most bytes, cut in the middle.
func short(s string, most int) string {
	s = printable.Line(s)
	if len(s) <= most {
		return s
	}
	const gap = " … "
	start, end := s[:most*3/4], s[len(s)-most/4+len(gap):]
	return printable.Line(strings.ToValidUTF8(start, "") + gap + strings.ToValidUTF8(end, ""))
}
