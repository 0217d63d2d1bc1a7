package kube_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/kube"
)

// kubeconfig returns a kubeconfig with current context prod and the given user and server, in JSON.
func kubeconfig(user, server string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: prod, contexts: [{name: prod, context: {cluster: c, user: u}}, `+
		`{name: plain, context: {cluster: c, user: token}}], clusters: [{name: c, cluster: %s}], users: [{name: u, user: %s}, {name: token, user: {token: s3cret}}]}`, server, user)
}

const (
	server  = `{server: "https://127.0.0.1:1"}`
	program = `{exec: {apiVersion: client.authentication.k8s.io/v1, command: "aws\e[2J", args: [hunter2], interactiveMode: Never}}`
	legacy  = `{auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}}`
)

// TestExecPluginsRequirePermission checks that a kubeconfig can start a program only if plugins are explicitly
// allowed.
func TestExecPluginsRequirePermission(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, test := range []struct {
		user, context string
		allow         bool
		want          []string
	}{
		{program, "", false, []string{`context "prod"`, `"aws\x1b[2J"`, "--allow-exec", "a token or a client certificate"}},
		{program, "prod", false, []string{`context "prod"`, "--allow-exec"}},
		{program, "", true, nil},
		{program, "plain", false, nil},
		{legacy, "", false, []string{`context "prod"`, `"gcp"`, "--allow-exec"}},
		{legacy, "", true, []string{`context "prod"`, `"gcp"`}},
		{"{token: s3cret}", "", false, nil},
		{"{token: s3cret}", "prdo", false, []string{`the kubeconfig does not contain context "prdo"; its contexts are plain, prod`}},
	} {
		if err := os.WriteFile(file, []byte(kubeconfig(test.user, server)), 0o600); err != nil {
			t.Fatal(err)
		}
		given := kube.Kubeconfig{File: file, Context: test.context, AllowExec: test.allow}
		config, err := kube.Config(given)
		t.Setenv("KUBECONFIG", file)
		given.File = ""
		if _, other := kube.Config(given); fmt.Sprint(other) != fmt.Sprint(err) {
			t.Errorf("by KUBECONFIG: %v, and by a flag: %v", other, err)
		}
		if (err != nil) != (test.want != nil) || (config == nil) != (err != nil) {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v; want %q", err, want)
			}
		}
	}
}

// TestEmptyKubeconfigIsAnError checks that an empty kubeconfig and an unknown context are errors.
func TestEmptyKubeconfigIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, text := range []string{"", "{apiVersion: v1, kind: Config}"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := kube.Config(kube.Kubeconfig{File: file})
		if config != nil || err == nil || !strings.HasSuffix(err.Error(), "kubeconfig does not name a cluster") {
			t.Errorf("%q: %v, %v", text, config, err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if config, err := kube.Config(kube.Kubeconfig{Context: "prod"}); config != nil || err == nil || !strings.Contains(err.Error(), `"prod"`) {
		t.Errorf("an unknown context: %v, %v", config, err)
	}
}

// TestUntrustedKubeconfigIsRestricted checks that an untrusted kubeconfig cannot refer to programs or files, such as
// the token of this process.
func TestUntrustedKubeconfigIsRestricted(t *testing.T) {
	for _, test := range []struct{ user, server, want string }{
		{"{token: s3cret}", server, ""},
		{program, server, "by running a program"}, {legacy, server, "by running a program"},
		{"{tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}", server, "it refers to files"},
		{"{client-certificate: /etc/tls.crt, client-key: /etc/tls.key}", server, "it refers to files"},
		{"{client-certificate-data: eA==, client-key: /etc/tls.key}", server, "it refers to files"},
		{"{token: s3cret}", `{server: "https://127.0.0.1:1", certificate-authority: /etc/passwd}`, "it refers to files"},
		{"{client-certificate-data: eA==, client-key-data: " + strings.Repeat("eHh4", 3<<10) + "}", server, "a key longer than 8 KiB"},
		{"{token: s3cret}", `{server: "https://127.0.0.1:1", certificate-authority-data: ` + strings.Repeat("eHh4", 22<<10) + "}", "a CA longer than 64 KiB"},
		{"{token: &a s3cret, tokenFile: *a}", server, "contains a YAML alias"},
		{"{token: s3cret}", "{}", "not usable"},
		{"hunter2", server, "it is not a kubeconfig"},
	} {
		config, err := kube.Config(kube.Kubeconfig{Content: []byte(kubeconfig(test.user, test.server)), AllowExec: true})
		switch {
		case test.want == "" && (err != nil || config.Host != "https://127.0.0.1:1" || config.BearerToken != "s3cret"):
			t.Errorf("%+v: %v, %v", test, config, err)
		case test.want != "" && (config != nil || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%+v: %v, %v", test, config, err)
		}
	}
	for _, text := range []string{"", "{}", "apiVersion: v1\nkind: Config"} {
		if config, err := kube.Config(kube.Kubeconfig{Content: []byte(text)}); config != nil || err == nil {
			t.Errorf("%q: %v, %v", text, config, err)
		}
	}
}

// TestErrorsHideAddressCredentials checks that errors show the address of an API server only if it does not contain a
// password, and that errors about an invalid address do not quote it.
func TestErrorsHideAddressCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	for _, test := range []struct{ server, want string }{
		{`{server: "https://admin:hunter2@127.0.0.1:1"}`, "contains credentials"},
		{`{server: "https://hunter2@127.0.0.1:1/k8s/clusters/c"}`, "contains credentials"},
		{`{server: "admin:hunter2@127.0.0.1:1"}`, "contains credentials"},
		{`{server: "https://admin:hunter2%zz@127.0.0.1:1"}`, "is not a URL"},
		{`{server: "https://127.0.0.1:1", proxy-url: "http://admin:hunter2%zz@127.0.0.1:1"}`, ""},
		{`{server: "https://127.0.0.1:1", proxy-url: "ftp://admin:hunter2@127.0.0.1:1"}`, ""},
	} {
		content := []byte(kubeconfig("{token: s3cret}", test.server))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []kube.Kubeconfig{{File: file}, {Content: content}} {
			config, err := kube.Config(given)
			if config != nil || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, %v", test.server, config, err)
			}
		}
	}
}
