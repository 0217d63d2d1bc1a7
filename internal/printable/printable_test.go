package printable_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
)

func TestLine(t *testing.T) {
	for name, text := range printabletest.Hostile {
		line := printable.Line(text)
		if unfit := printabletest.Unfit(line); unfit != "" || strings.Contains(line, "\n") || len(line) > printable.Longest {
			t.Errorf("%s: %s: %.200q", name, unfit, line)
		}
		if again := printable.Line(line); again != line {
			t.Errorf("%s: once more it is %.200q, not %.200q", name, again, line)
		}
	}
	for text, want := range map[string]string{
		"as it is":               "as it is",
		"Größe 3 · 日本":           "Größe 3 · 日本",
		"dial tcp [fd00::a]:1":   "dial tcp [fd00::a]:1",
		"::1 is not reached":     ": :1 is not reached",
		"two\nlines":             "two lines",
		"a\tb":                   "a b",
		"### title":              "# # # title",
		"red \x1b[31m":           `red \x1b[31m`,
		"a\u00ad\u3164\ufe0f":    `a\u00ad\u3164\ufe0f`,
		"a\U000e0041\U000e0100":  `a\U000e0041\U000e0100`,
		"e\u0301":                "e\u0301", // an accent
		strings.Repeat("ä", 1e4): strings.Repeat("ä", 3072) + " … " + strings.Repeat("ä", 1021),
	} {
		if got := printable.Line(text); got != want {
			t.Errorf("%.80q: got %.80q, want %.80q", text, got, want)
		}
	}
}

// TestDefaultIgnorablesAreEscaped checks that every character that Unicode recommends not to show, or that looks
// like a space, is escaped.
func TestDefaultIgnorablesAreEscaped(t *testing.T) {
	ignorable := []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf}
	for r := range unicode.MaxRune + 1 {
		if text := string(r); (unicode.In(r, ignorable...) || strings.ContainsRune("\u2800\U00016fe4\U0001d159", r)) && (printable.Is(text) || printable.Text(text) == text) {
			t.Errorf("%U is shown unchanged", r)
		}
	}
}

// TestShort checks that shortened text is a prefix of the line and is itself a line.
func TestShort(t *testing.T) {
	for name, text := range printabletest.Hostile {
		for _, most := range []int{3, 4, 10, 100, 1000} {
			short := printable.Short(text, most)
			if unfit := printabletest.Unfit(short + " harmless"); unfit != "" || len(short) > most || short != printable.Short(short, most) ||
				!strings.HasPrefix(printable.Line(text), strings.TrimSuffix(short, "…")) {
				t.Errorf("%s: %s: %.200q", name, unfit, short)
			}
		}
	}
	if got := printable.Short("äää", 5); got != "ä…" {
		t.Errorf("got %q", got)
	}
}

// TestJSON checks that escaped JSON has the same meaning as the original, whatever text it contains.
func TestJSON(t *testing.T) {
	for name, text := range printabletest.Hostile {
		document, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := printable.JSON(document)
		var got string
		if err := json.Unmarshal(escaped, &got); err != nil || got != strings.ToValidUTF8(strings.ReplaceAll(text, "\xff\xfe", "\ufffd\ufffd"), "\ufffd") {
			t.Errorf("%s: %v, it means %.200q", name, err, got)
		}
		if unfit := printabletest.Unfit(string(escaped)); unfit != "" {
			t.Errorf("%s: %s: %.200s", name, unfit, escaped)
		}
	}
	if got := string(printable.JSON([]byte("\"\U000e0041 a\""))); got != `"\udb40\udc41 a"` {
		t.Errorf("got %s", got)
	}
}
