package kube_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"quorate.dev/quorate/clusters/kube"
)

func TestClientUser(t *testing.T) {
	const account = "system:serviceaccount:quorate-system:quorate"
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+account+`","aud":["x"]}`)) + ".c2ln"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config rest.Config
		want   string
	}{
		"a token":                {rest.Config{BearerToken: token}, account},
		"the token of a pod":     {rest.Config{BearerToken: "old", BearerTokenFile: file}, account},
		"a file that is missing": {rest.Config{BearerToken: token, BearerTokenFile: file + "x"}, account},
		"impersonation":          {rest.Config{BearerToken: token, Impersonate: rest.ImpersonationConfig{UserName: "ann"}}, "ann"},
		"a certificate":          {rest.Config{}, ""},
		"an opaque token":        {rest.Config{BearerToken: "abc"}, ""},
		"no JSON":                {rest.Config{BearerToken: "a.b.c"}, ""},
		"two parts":              {rest.Config{BearerToken: "a.e30"}, ""},
	} {
		client, err := kube.New(&test.config)
		if err != nil || client.User() != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
