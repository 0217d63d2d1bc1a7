package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPasswordIsSentToOneHost checks that a password is refused if it would be sent to two hosts, even if the
// directories of the sources have different paths.
func TestPasswordIsSentToOneHost(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	password := func(text string) map[string]string { return map[string]string{"username": "u", "password": text} }
	dir, same, another := secretsIn(t, password("p")), secretsIn(t, password("p")), secretsIn(t, password("q"))
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for other, refused := range map[string]bool{dir: true, dir + "/": true, dir + "/.": true, link: true, same: true, another: false} {
		if err := sendTwice("https://git.example.com/a.git", dir, "https://other.example.org/b.git", other); (err != nil) != refused {
			t.Errorf("%s and %s: %v", dir, other, err)
		}
	}
	for _, spelling := range []string{"https://GIT.example.com/b.git", "https://git.example.com:443/b.git"} {
		if err := sendTwice("https://git.example.com/a.git", dir, spelling, dir); err != nil {
			t.Errorf("%s: %v", spelling, err)
		}
	}
	if sendTwice("https://git.example.com/a.git", dir, "https://git.example.com:8443/b.git", dir) == nil {
		t.Error("a different port is treated as the same host")
	}
}

// TestEachSecretIsSentToOneHost checks that secrets are compared individually, regardless of how they are stored, and
// that user names and the secrets of ssh sources, which ssh does not send, are not compared.
func TestEachSecretIsSentToOneHost(t *testing.T) {
	app := func(key string) map[string]string {
		return map[string]string{"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": key}
	}
	key := func(name string) map[string]string {
		return map[string]string{"identity": name, "known_hosts": "k", "username": "git", "password": "passphrase"}
	}
	const https, ssh = "https://", "ssh://git@"
	for what, c := range map[string]struct {
		scheme  string
		a, b    map[string]string
		refused bool
	}{
		"a token as password and bearer token": {https, map[string]string{"username": "u", "password": "t"}, map[string]string{"bearerToken": "t"}, true},
		"a key with and without a newline":     {https, app("KEY"), app("KEY\n"), true},
		"user names only":                      {https, map[string]string{"username": "u"}, map[string]string{"username": "u"}, false},
		"ssh keys with one passphrase":         {ssh, key("KEY1"), key("KEY2"), false},
	} {
		a, b := secretsIn(t, c.a), secretsIn(t, c.b)
		if err := sendTwice(c.scheme+"git.example.com/a.git", a, c.scheme+"other.example.org/b.git", b); (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCommitStatusAcceptsHostSpellings checks that commit statuses may be sent for repositories on one host even if
// their URLs spell the host differently.
func TestCommitStatusAcceptsHostSpellings(t *testing.T) {
	for other, refused := range map[string]bool{"https://GIT.example.com/x/b.git": false, "https://git.example.com:443/x/b.git": false, "https://git.example.com:8443/x/b.git": true} {
		var a, b source
		a.Location, b.Location = "https://git.example.com/x/a.git", other
		if _, err := hostsOf("gitea", "", []source{a, b}); (err != nil) != refused {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// sendTwice checks two sources with the given credentials directories.
func sendTwice(location, directory, otherLocation, otherDirectory string) error {
	var a, b source
	a.Location, a.Credentials = location, directory
	b.Location, b.Credentials = otherLocation, otherDirectory
	return checkHostsOfCredentials([]source{a, b})
}

func secretsIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
