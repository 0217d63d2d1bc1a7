package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const root = "../.."

func command(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, said)
	}
	return string(said)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// newRelease returns a release with an empty temporary directory in which the test creates the files.
func newRelease(t *testing.T) *release {
	return &release{
		version: "v1.2.3", repository: "registry.example.com/quorate", root: root, out: t.TempDir(),
		commit: strings.Repeat("1", 40), time: time.Unix(1700000000, 0).UTC(),
	}
}

// TestClear checks that a directory with other files is not deleted.
func TestClear(t *testing.T) {
	r := newRelease(t)
	keep := filepath.Join(r.out, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.clear(); err == nil || !strings.Contains(err.Error(), "neither empty nor a complete release") {
		t.Error(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	if err := writeSums(r.out); err != nil {
		t.Fatal(err)
	}
	if err := r.clear(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(r.out); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
