package printable

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// shortestSecret is the minimum length of a secret that is hidden, in bytes. Hiding shorter ones would blank out text.
const shortestSecret = 4

// Hide replaces secrets in a text that may quote a response, such as an error. It finds them in upper or lower case,
// quoted as Go does, and percent-encoded. It must come before truncation, which may leave a part of a secret.
func Hide(text string, secrets ...string) string {
	inside := make([]bool, len(text)) // secrets may overlap
	lower := lowerASCII(text)
	for _, secret := range secrets {
		if len(secret) < shortestSecret {
			continue
		}
		for _, form := range formsOf(secret) {
			mark(inside, lower, lowerASCII(form))
		}
	}
	var shown strings.Builder
	for i := range inside {
		switch {
		case !inside[i]:
			shown.WriteByte(text[i])
		case i == 0 || !inside[i-1]:
			shown.WriteString("…")
		}
	}
	return shown.String()
}

// formsOf returns the forms in which a response or an error may repeat a secret.
func formsOf(secret string) []string {
	quoted := strconv.Quote(secret)
	return []string{secret, quoted[1 : len(quoted)-1], url.QueryEscape(secret), url.PathEscape(secret)}
}

// mark marks the bytes of all occurrences of s in text.
func mark(marked []bool, text, s string) {
	for start := 0; ; start++ {
		i := strings.Index(text[start:], s)
		if i < 0 {
			return
		}
		start += i
		for j := range len(s) {
			marked[start+j] = true
		}
	}
}

// lowerASCII returns a text of the same length, even if s is not UTF-8.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// Credentials returns what to hide of a user with a password, in the forms in which they are sent. A user without a
// password is a token.
func Credentials(user *url.Userinfo) []string {
	if user == nil {
		return nil
	}
	password, has := user.Password()
	basic := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
	if !has {
		password = user.Username()
	}
	return []string{password, basic, user.String()}
}
