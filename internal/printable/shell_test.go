package printable_test

import (
	"testing"

	"quorate.dev/quorate/internal/printable"
)

// TestShellWord checks that text is one word for a shell, and is quoted only if necessary.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "''",
		"main@sha1:0a_b-c.d/e=f,g%+": "main@sha1:0a_b-c.d/e=f,g%+",
		"a b":                        "'a b'",
		"$(x)":                       "'$(x)'",
		"a'b":                        `'a'\''b'`,
		"a\nb":                       "'a b'",
		"a\n":                        "'a '",
	} {
		if got := printable.ShellWord(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
