package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/credentials"
	"quorate.dev/quorate/gitsource/remote"
)

func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	files := map[string]string{"identity.pub": "of no interest"}
	for _, name := range credentials.Files() {
		files[name] = "the " + name + "\n"
	}
	dir := directory(t, files)
	got, err := credentials.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := remote.Auth{
		Username: "the username", Password: "the password", BearerToken: "the bearerToken",
		CABundle: []byte("the ca.crt\n"), ClientCertificate: []byte("the tls.crt\n"), ClientKey: []byte("the tls.key\n"),
		Identity: []byte("the identity\n"), Passphrase: "the passphrase", KnownHosts: filepath.Join(dir, "known_hosts"),
		GitHubApp: remote.GitHubApp{ID: "the githubAppID", InstallationID: "the githubAppInstallationID",
			PrivateKey: []byte("the githubAppPrivateKey\n"), BaseURL: "the githubAppBaseURL"},
		ProxyUsername: "the proxyUsername", ProxyPassword: "the proxyPassword",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// TestReadMountedSecret reads a Secret as the kubelet mounts it: each file is a symlink through a directory symlink,
// which is replaced when the Secret changes.
func TestReadMountedSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..2026_01_01"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..2026_01_01", "password"), []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": "..2026_01_01", "password": "..data/password"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := credentials.Read(dir)
	if err != nil || got.Password != "s3cret" {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestReadRejectsUnusableFiles(t *testing.T) {
	garbled := directory(t, map[string]string{"password": " \n", "username": strings.Repeat("x", 1<<20+1)})
	if err := os.Mkdir(filepath.Join(garbled, "bearerToken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(garbled, "identity")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"/nonexistent": "the options for the source are not valid: read the credentials: open /nonexistent: no such file or directory",
		directory(t, map[string]string{"passwrod": "x"}): "the options for the source are not valid: DIR does not contain credentials; expected files named " +
			strings.Join(credentials.Files(), ", "),
		garbled: "the options for the source are not valid: read the credentials: DIR/username is larger than 1024 KiB; DIR/password is empty; " +
			"read DIR/bearerToken: is a directory; DIR/identity is a link to a file that does not exist",
	} {
		_, err := credentials.Read(dir)
		if !errors.Is(err, gitsource.ErrOptions) {
			t.Fatalf("error %v", err)
		}
		if got := strings.ReplaceAll(err.Error(), dir+"/", "DIR/"); strings.ReplaceAll(got, dir+" ", "DIR ") != want {
			t.Errorf("error %s\n want %s", got, want)
		}
	}
}

func TestFromEnvironment(t *testing.T) {
	values := map[string]string{"QUORATE_GIT_USERNAME": "x", "QUORATE_GIT_PASSWORD": "y\n", "QUORATE_GIT_TOKEN": "z"}
	got := credentials.FromEnvironment(func(name string) string { return values[name] })
	if got.Username != "x" || got.Password != "y" || got.BearerToken != "z" {
		t.Error("not the value in the environment")
	}
	if got := credentials.FromEnvironment(func(string) string { return "" }); got.Given() {
		t.Errorf("got %v of nothing", got)
	}
}
