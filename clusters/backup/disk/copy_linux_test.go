package disk_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"quorate.dev/quorate/clusters/backup/disk"
)

// TestCopyKeepsHoles checks that a copy has the same content as the original and does not use more space.
func TestCopyKeepsHoles(t *testing.T) {
	const size = 8<<30 + 1
	data := bytes.Repeat([]byte("data"), 4<<10)
	at := []int64{1 << 20, 5 << 30}
	dir := t.TempDir()
	from, to := created(t, dir, "from"), created(t, dir, "to")
	for _, at := range at {
		if _, err := from.WriteAt(data, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(from.Truncate(size), disk.Copy(t.Context(), to, from)); err != nil {
		t.Fatal(err)
	}
	info, err := to.Stat()
	if err != nil || info.Size() != size {
		t.Fatalf("%v, %v", info, err)
	}
	if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; taken > 1<<20 {
		t.Errorf("the copy takes %d bytes", taken)
	}
	for _, at := range at {
		around := make([]byte, len(data)+2)
		if _, err := to.ReadAt(around, at-1); err != nil || !bytes.Equal(around, append(append([]byte{0}, data...), 0)) {
			t.Errorf("at %d, the content differs: %v", at, err)
		}
	}
}

// TestCopyIsCompleteAndCancelable checks that empty files, full files and files that consist only of a hole are copied
// completely, and that copying stops when its context is done.
func TestCopyIsCompleteAndCancelable(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"empty": "", "full": "full"} {
		from, to := created(t, dir, name), created(t, dir, name+"-copy")
		if _, err := from.WriteString(content); err != nil {
			t.Fatal(err)
		}
		if err := disk.Copy(t.Context(), to, from); err != nil {
			t.Error(err)
		}
		if copied, err := os.ReadFile(to.Name()); err != nil || string(copied) != content {
			t.Errorf("%q, %v", copied, err)
		}
	}
	hole, to := created(t, dir, "hole"), created(t, dir, "hole-copy")
	if err := errors.Join(hole.Truncate(1<<20), disk.Copy(t.Context(), to, hole)); err != nil {
		t.Error(err)
	}
	if copied, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(copied, make([]byte, 1<<20)) {
		t.Errorf("%d bytes, %v", len(copied), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	full, again := created(t, dir, "full-2"), created(t, dir, "again")
	if _, err := full.WriteString("full"); err != nil {
		t.Fatal(err)
	}
	if err := disk.Copy(ctx, again, full); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func created(t *testing.T, dir, name string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
