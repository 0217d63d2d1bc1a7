package visible_test

import (
	"net/url"
	"testing"

	"quorate.dev/quorate/visible"
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
		if got := visible.Hide(text, "abcd", token, "", "xyz", "cdef"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	for text, user := range map[string]*url.Userinfo{
		"pass@word x:pass%40word eDpwYXNzQHdvcmQ=": url.UserPassword("x", "pass@word"),
		"token dG9rZW46": url.User("token"),
	} {
		if got := visible.Hide(text, visible.Credentials(user)...); len(got) > len("… … …") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if secrets := visible.Credentials(nil); secrets != nil {
		t.Errorf("%q", secrets)
	}
}
