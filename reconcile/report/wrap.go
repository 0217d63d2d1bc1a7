package report

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"quorate.dev/quorate/visible"
)

// Wrap makes text of others fit for a terminal that is Width columns wide: it breaks between words.
// The first line begins after that many columns, the others are indented. Without a width it is one
// line, however long.
func (s Style) Wrap(text string, after, indent int) string {
	text = visible.Line(text)
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

// columns are how many a terminal shows a text in: two for a letter of East Asia and for an emoji,
// none for a mark that is put onto the letter before it.
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

// mayBegin reports whether a line may begin with a word: not with what a CI system takes for a
// command there, nor with an empty one, which such a word may follow.
func mayBegin(word string) bool { return word != "" && !strings.HasPrefix(word, "::") }

// continued is the indentation of lines that go on: deeper than that of any line of a report, so
// that text of others never looks like one.
const continued = 8

// line writes what is said of something: a word that is painted, and the text behind it, in the
// indentation of its block.
func (s Style) line(b *strings.Builder, indent int, label, text string, paint func(string) string) {
	margin := strings.Repeat(" ", indent)
	b.WriteString(margin)
	if label != "" {
		b.WriteString(paint(label) + " ")
		indent += len(label) + 1
	}
	b.WriteString(s.Wrap(text, indent, continued) + "\n")
}
