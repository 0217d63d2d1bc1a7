//go:build unix

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/clusters/backup/disk"
)

// TestPlantedFilesAreNotFollowed checks that links planted in place of a lock or mark are not followed, and that other
// planted files do not block.
func TestPlantedFilesAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.Symlink(at("elsewhere"), at("link")), unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("directory"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range []string{"link", "pipe", "directory"} {
			if unlock, err := disk.Lock(t.Context(), at(name), nil); err == nil {
				unlock()
				t.Errorf("a %s was locked", name)
			}
			if text, err := disk.Read(at(name), 10); err == nil {
				t.Errorf("a %s was read: %q", name, text)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	if _, err := os.Lstat(at("elsewhere")); err == nil {
		t.Error("a file was created where the link leads")
	}
}

// TestRead checks that a file is read up to the size limit.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := disk.Read(path, 10); err != nil || string(text) != "0123456789" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := disk.Read(path, 9); err == nil || !strings.Contains(err.Error(), "more than 9 bytes") {
		t.Error(err)
	}
}
