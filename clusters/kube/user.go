package kube

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

// User returns the name of the user that makes the requests if it is impersonated or a service account, or "" if the
// name is unknown.
func (c *Client) User() string { return c.user }

func userOf(config *rest.Config) string {
	if as := config.Impersonate.UserName; as != "" {
		return as
	}
	token := config.BearerToken
	if file := config.BearerTokenFile; file != "" {
		if content, err := os.ReadFile(file); err == nil {
			token = strings.TrimSpace(string(content))
		}
	}
	return subjectOf(token)
}

// subjectOf returns the subject of a token. It does not verify the token, which belongs to this process.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return ""
	}
	return claims.Subject
}
