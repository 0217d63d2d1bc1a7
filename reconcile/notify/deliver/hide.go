package deliver

import (
	"net/url"
	"strings"

	"quorate.dev/quorate/visible"
)

// Hide returns the beginning, of most bytes, of a text that the answer of a service has a say in, as an error does
// that quotes one: without the URL that was asked for, which may be a secret in each of its parts, and without secrets.
func Hide(text, asked string, secrets []string, most int) string {
	secrets = append([]string{asked}, secrets...)
	if u, err := url.Parse(asked); err == nil {
		secrets = append(secrets, u.RequestURI(), u.Path)
		for _, part := range strings.FieldsFunc(u.Path+"?"+u.RequestURI(), isBetween) {
			if len(part) >= leastSecret {
				secrets = append(secrets, part)
			}
		}
	}
	for _, secret := range secrets {
		if len(secret) > 1 {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return visible.Short(text, most)
}

// leastSecret is how long a part of a URL is that may be a secret by itself, in bytes.
const leastSecret = 8

// isBetween reports whether a character is between parts of a URL.
func isBetween(r rune) bool { return strings.ContainsRune("/?&=", r) }
