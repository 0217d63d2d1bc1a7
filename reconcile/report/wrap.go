package report

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"quorate.dev/quorate/internal/printable"
)

// Wrap wraps untrusted text between words for a terminal of the given Width. The first line starts at column after, and
// the other lines are indented. Without a width, it returns a single line of any length.
func (s Style) Wrap(text string, after, indent int) string {
	text = printable.Line(text)
	if s.Width == 0 {
		return text
	}
	var b strings.Builder
	column := after
	for i, word := range strings.Split(text, " ") {
		wide := columns(word)
		switch {
		case i == 0:
		case column+1+wide > s.Width && mayBegin(word):
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += wide
	}
	return b.String()
}

// columns returns the number of terminal columns of a text: two for an East Asian wide character or an emoji, none for
// a combining mark.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// mayBegin reports whether a line may begin with a word. It may not begin with a CI command, or with an empty word,
// which could precede a command.
func mayBegin(word string) bool { return word != "" && !strings.HasPrefix(word, "::") }

// continued is the indentation of continuation lines. It is deeper than the indentation of any regular line of a
// report, so that untrusted text cannot imitate a regular line.
const continued = 8

// line writes a colored label and text after it, with the given indentation.
func (s Style) line(b *strings.Builder, indent int, label, text string, paint func(string) string) {
	margin := strings.Repeat(" ", indent)
	b.WriteString(margin)
	if label != "" {
		b.WriteString(paint(label) + " ")
		indent += len(label) + 1
	}
	b.WriteString(s.Wrap(text, indent, continued) + "\n")
}
