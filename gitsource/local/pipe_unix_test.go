//go:build unix

package local

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inTime returns the result of f, or fails the test if f takes too long.
func inTime(t *testing.T, f func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting after 10 s")
		return nil
	}
}

// TestFindDoesNotWaitForPipes checks that Find does not block if a file that it reads is replaced with a named pipe.
func TestFindDoesNotWaitForPipes(t *testing.T) {
	for _, pipe := range []string{".git", ".git/index", "configs/commondir", "configs/objects/info/alternates"} {
		t.Run(pipe, func(t *testing.T) {
			worktree := t.TempDir()
			if pipe != ".git" {
				write(t, filepath.Join(worktree, ".git"), fakeBare(nil))
			}
			write(t, filepath.Join(worktree, "configs"), fakeBare(map[string]string{"objects/info/.keep": ""}))
			must(t, syscall.Mkfifo(filepath.Join(worktree, pipe), 0o600))
			err := inTime(t, func() error { _, err := Find(filepath.Join(worktree, "configs")); return err })
			if pipe == ".git/index" && (err == nil || !strings.Contains(err.Error(), "is not a regular file")) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestReferencesDoNotWaitForPipes checks that References does not block if a file that lists references is a named
// pipe.
func TestReferencesDoNotWaitForPipes(t *testing.T) {
	for _, pipe := range []string{"packed-refs", "refs/pipe"} {
		t.Run(pipe, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, fakeBare(nil))
			must(t, syscall.Mkfifo(filepath.Join(dir, pipe), 0o600))
			layout, err := Find(dir)
			must(t, err)
			repository, err := Open(layout)
			must(t, err)
			err = inTime(t, func() error { _, err := repository.References(); return err })
			if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
				t.Errorf("error %v", err)
			}
		})
	}
}
