package gitsource

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests/confined/confinedtest"
)

// wantNothingLeft reports temporary files that are left in dir.
func wantNothingLeft(t *testing.T, dir, after string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("after %s: %v, error %v", after, entries, err)
	}
}

// TestFetchLeavesNoFiles checks that Fetch leaves neither processes nor files behind, regardless of how it ends.
func TestFetchLeavesNoFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, what := range []string{"fail=x", "fill", "show", "show=large"} {
		takeOver(t, what)
		_, _ = Fetch(t.Context(), elsewhere)
		wantNothingLeft(t, os.TempDir(), what)
	}
	for _, what := range []string{"wait", "spin"} {
		takeOver(t, what)
		o := elsewhere
		o.Timeout = 200 * time.Millisecond
		_, err := Fetch(t.Context(), o)
		wantNothingLeft(t, os.TempDir(), err.Error())

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		_, err = Fetch(ctx, elsewhere)
		wantNothingLeft(t, os.TempDir(), err.Error())
	}
}

// TestFetchRemovesUnreadableDirectories checks that a directory that its owner cannot read is removed as well. Root can
// read every directory, so the test runs as another user.
func TestFetchRemovesUnreadableDirectories(t *testing.T) {
	if os.Getenv("QUORATE_TEST_LEAVES") != "" {
		leave(t)
		return
	}
	if os.Geteuid() != 0 {
		leave(t)
		return
	}
	program, dir := confinedtest.ForEverybody(t), t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestFetchRemovesUnreadableDirectories$")
	cmd.Env = []string{"QUORATE_TEST_LEAVES=x", "TMPDIR=" + dir}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func leave(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	takeOver(t, "fill")
	_, _ = Fetch(t.Context(), elsewhere)
	wantNothingLeft(t, dir, "fill")
	closed := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.MustWrite(t, filepath.Join(closed, "file"), "x")
	for _, name := range []string{closed, filepath.Dir(closed)} {
		if err := os.Chmod(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeAll(filepath.Dir(closed)); err != nil {
		t.Error(err)
	}
	wantNothingLeft(t, dir, "removal")
}
