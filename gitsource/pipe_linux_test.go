package gitsource

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestFetchDoesNotWaitForPipeAsIndex checks that Fetch ends before its deadline if the index of the repository that
// encloses the source is a named pipe.
func TestFetchDoesNotWaitForPipeAsIndex(t *testing.T) {
	worktree := t.TempDir()
	for _, dir := range []string{".git/objects", ".git/refs", "configs/objects", "configs/refs"} {
		if err := os.MkdirAll(filepath.Join(worktree, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, head := range []string{".git/HEAD", "configs/HEAD"} {
		if err := os.WriteFile(filepath.Join(worktree, head), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(worktree, ".git", "index"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Fetch(ctx, Options{Location: filepath.Join(worktree, "configs"), Timeout: 2 * time.Second})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the source was read")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Fetch has not ended 8 s after its deadline")
	}
}
