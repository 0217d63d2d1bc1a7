package printable

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// shortestSecret is the minimum length, in bytes, of a secret to hide. Hiding shorter secrets would blank out ordinary
// text.
const shortestSecret = 4

// Hide replaces secrets in text that may quote a response, such as an error. It finds secrets in upper and lower case,
// in Go's quoted form, and percent-encoded. Call Hide before truncating the text, because truncation may leave part of
// a secret.
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

// lowerASCII converts the ASCII letters in s to lower case. The result has the same length as s, even if s is not valid
// UTF-8.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// Credentials returns the secrets in user, in the forms in which they are sent. If user has no password, the user name
// is a token.
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
