package deliver

import (
	"net/url"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// Hide removes the secrets and the requested URL from text that may quote a response, such as an error, and truncates
// it to most bytes. Any part of the URL may be secret, including its user and password.
func Hide(text, asked string, secrets []string, most int) string {
	secrets = append([]string{asked}, secrets...)
	if u, err := url.Parse(asked); err == nil {
		secrets = append(secrets, u.RequestURI(), u.Path)
		if u.User != nil {
			secrets = append(append(secrets, u.User.Username()), printable.Credentials(u.User)...)
		}
		for _, part := range strings.FieldsFunc(u.Path+"?"+u.RequestURI(), isBetween) {
			if len(part) >= leastSecret {
				secrets = append(secrets, part)
			}
		}
	}
	return printable.Short(printable.Hide(text, secrets...), most)
}

// leastSecret is the minimum length of a URL part that is treated as a secret, in bytes.
const leastSecret = 8

// isBetween reports whether a character separates parts of a URL.
func isBetween(r rune) bool { return strings.ContainsRune("/?&=", r) }
