package printable_test

import (
	"net/url"
	"testing"

	"quorate.dev/quorate/internal/printable"
)

func TestHide(t *testing.T) {
	const token = `To/k"en+1`
	for text, want := range map[string]string{
		"":                                "",
		"denied":                          "denied",
		"denied: Bearer " + token:         "denied: Bearer …",
		token + token + ".":               "….",
		`x: "To/k\"en+1"`:                 `x: "…"`,
		"/To%2Fk%22en%2B1?x":              "/…?x",
		"/To%2fk%22en+1?x":                "/…?x",
		"https://to/k\"en+1.example.com/": "https://….example.com/",
		"abcdefgh":                        "…gh",
		"abcd":                            "…",
		"xyz":                             "xyz",
		"\xffabcd\xff":                    "\xff…\xff",
	} {
		if got := printable.Hide(text, "abcd", token, "", "xyz", "cdef"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	for text, user := range map[string]*url.Userinfo{
		"pass@word x:pass%40word eDpwYXNzQHdvcmQ=": url.UserPassword("x", "pass@word"),
		"token dG9rZW46": url.User("token"),
	} {
		if got := printable.Hide(text, printable.Credentials(user)...); len(got) > len("… … …") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if secrets := printable.Credentials(nil); secrets != nil {
		t.Errorf("%q", secrets)
	}
}
