package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/sources"
)

// TestPasswordIsSentToOneHost checks that a password is refused if it would be sent to two hosts, even if the
// directories of the sources have different paths.
func TestPasswordIsSentToOneHost(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	password := func(p string) string { return filesIn(t, "username", "u", "password", p) }
	dir, same, another := password("p"), password("p"), password("q")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for other, refused := range map[string]bool{dir: true, dir + "/": true, dir + "/.": true, link: true, same: true, another: false} {
		checkHosts(t, "https://git.example.com/a.git", dir, "https://other.example.org/b.git", other, refused)
	}
}

// TestSecretIsSentToOneHost checks that each secret is compared, under any name and with any white space around it.
// User names are not secrets, and nothing is sent over ssh.
func TestSecretIsSentToOneHost(t *testing.T) {
	for _, c := range []struct {
		a, b    []string
		scheme  string
		refused bool
	}{
		{[]string{"username", "u", "password", "ghp_1"}, []string{"bearerToken", "ghp_1"}, "https", true},
		{[]string{"githubAppID", "1", "githubAppPrivateKey", "KEY"}, []string{"githubAppID", "1", "githubAppPrivateKey", "KEY\n"}, "https", true},
		{[]string{"password", "p"}, []string{"password", "p", "passphrase", "x"}, "https", true},
		{[]string{"username", "u"}, []string{"username", "u"}, "https", false},
		{[]string{"identity", "KEY1", "username", "git"}, []string{"identity", "KEY2", "username", "git"}, "ssh", false},
		{[]string{"identity", "KEY1", "password", "p"}, []string{"identity", "KEY2", "password", "p"}, "ssh", false},
	} {
		checkHosts(t, c.scheme+"://git.example.com/a.git", filesIn(t, c.a...), c.scheme+"://other.example.org/b.git", filesIn(t, c.b...), c.refused)
	}
}

// TestOneHostInSeveralSpellings checks that a secret may be sent to one host in several spellings.
func TestOneHostInSeveralSpellings(t *testing.T) {
	dir := filesIn(t, "password", "p")
	for b, refused := range map[string]bool{"https://GIT.example.com/b.git": false, "https://git.example.com:443/b.git": false, "https://git.example.com:8443/b.git": true} {
		checkHosts(t, "https://git.example.com/a.git", dir, b, dir, refused)
		_, err := hostsOf("gitea", "", []source{{Source: sources.Source{Location: "https://git.example.com/x/a.git"}},
			{Source: sources.Source{Location: strings.Replace(b, "/b", "/x/b", 1)}}})
		if (err != nil) != refused {
			t.Errorf("commit status at %s: %v", b, err)
		}
	}
}

func checkHosts(t *testing.T, locationA, dirA, locationB, dirB string, refused bool) {
	t.Helper()
	var a, b source
	a.Location, a.Credentials, b.Location, b.Credentials = locationA, dirA, locationB, dirB
	if err := checkHostsOfCredentials([]source{a, b}); (err != nil) != refused {
		t.Errorf("%s with %s and %s with %s: %v", locationA, dirA, locationB, dirB, err)
	}
}
