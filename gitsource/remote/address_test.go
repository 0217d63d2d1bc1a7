package remote

import (
	"strings"
	"testing"

	"quorate.dev/quorate/internal/printable"
)

func TestParseAddress(t *testing.T) {
	for location, want := range map[string]string{
		"https://git.example.com/x.git":            "https  git.example.com  /x.git",
		"ssh://git@git.example.com:2222/srv/x.git": "ssh git git.example.com 2222 /srv/x.git",
		"ssh://git.example.com/~a/x.git":           "ssh  git.example.com  ~a/x.git",
		"ssh://git@[::1]:2222/x%20y.git":           "ssh git ::1 2222 /x y.git",
		"git@git.example.com:x.git":                "ssh git git.example.com  x.git",
		"git@git.example.com:/srv/x.git":           "ssh git git.example.com  /srv/x.git",
		"git@git.example.com:2222/x.git":           "ssh git git.example.com  2222/x.git",
		"git@[git.example.com:2222]:x.git":         "ssh git git.example.com 2222 x.git",
		"git@[::1]:x.git":                          "ssh git ::1  x.git",
		"git.example.com:~a/x%20y?#.git":           "ssh  git.example.com  ~a/x%20y?#.git",
	} {
		u, err := ParseAddress(location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		if got := strings.Join([]string{u.Scheme, u.User.Username(), u.Hostname(), u.Port(), u.Path}, " "); got != want {
			t.Errorf("%s: got %q, want %q", location, got, want)
		}
	}
}

// FuzzParseAddress checks that a program cannot mistake an accepted location for an option, and that a terminal cannot
// mistake it for a control sequence.
func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"git@git.example.com:x.git", "ssh://git@[::1]:22/~x", "https://x/y", "git@[x:1]:y", "[a@b]:c", "-x:y", "x::y", "ssh://%2d/x", "ssh://0\x89::/0", "ssh://[fe80::1%25eth0]/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, location string) {
		u, err := ParseAddress(location)
		if err != nil {
			return
		}
		if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" {
			t.Errorf("scheme %q", u.Scheme)
		}
		for _, part := range []string{u.Path, u.Hostname(), u.User.Username()} {
			if u.Scheme == "ssh" && (strings.HasPrefix(part, "-") || !printable.Is(part)) {
				t.Errorf("part %q", part)
			}
		}
		if _, given := u.User.Password(); given || u.Host == "" {
			t.Errorf("host %q, with a password: %v", u.Host, given)
		}
	})
}

// TestShellQuote checks that shellQuote matches git's quoting for sh and csh.
func TestShellQuote(t *testing.T) {
	for s, want := range map[string]string{"/x y": "'/x y'", "it's": `'it'\''s'`, "a!b": `'a'\!'b'`, "$(id)`": "'$(id)`'"} {
		if got := shellQuote(s); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}
