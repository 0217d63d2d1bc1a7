package machine

import (
	"strings"
	"testing"
)

func TestStringKeepsSecrets(t *testing.T) {
	spec := Spec{Files: map[string]string{
		"/run/key":        "-----BEGIN EC PRIVATE KEY-----\nsecret\n-----END EC PRIVATE KEY-----\n",
		"/run/kubeconfig": "user:\n  client-key-data: secret\n  name: visible\n",
	}}
	text := spec.String()
	if strings.Contains(text, "secret") || !strings.Contains(text, "visible") {
		t.Errorf("it reports too much or too little:\n%s", text)
	}
}
