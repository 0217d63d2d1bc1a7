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
	dir, same, another := passwordIn(t, "p"), passwordIn(t, "p"), passwordIn(t, "q")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for other, refused := range map[string]bool{dir: true, dir + "/": true, dir + "/.": true, link: true, same: true, another: false} {
		var a, b source
		a.Location, a.Credentials = "https://git.example.com/a.git", dir
		b.Location, b.Credentials = "https://other.example.org/b.git", other
		if err := checkHostsOfCredentials([]source{a, b}); (err != nil) != refused {
			t.Errorf("%s and %s: %v", dir, other, err)
		}
	}
}

func passwordIn(t *testing.T, password string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"username": "u", "password": password} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
