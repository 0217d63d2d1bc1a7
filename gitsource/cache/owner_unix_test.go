//go:build unix

package cache

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTamperedEntriesCountAsMissing checks that a tampered file in place of an entry is treated as missing, and that
// the next entry replaces it. Links are not followed, pipes do not block, and large files are not read to their end.
func TestTamperedEntriesCountAsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Store("other", objectsOf("x")); err != nil {
		t.Fatal(err)
	}
	name, good := d.entry("x"), read(t, d.entry("other"))
	write := func(content []byte, mode os.FileMode) error {
		return errors.Join(os.WriteFile(name, content, 0o600), os.Chmod(name, mode))
	}
	for what, tamper := range map[string]func() error{
		"symbolic link":           func() error { return os.Symlink(d.entry("other"), name) },
		"link to nothing":         func() error { return os.Symlink("nowhere", name) },
		"FIFO":                    func() error { return syscall.Mkfifo(name, 0o600) },
		"directory":               func() error { return os.Mkdir(name, 0o700) },
		"writable by the group":   func() error { return write(good, 0o620) },
		"writable by all":         func() error { return write(good, 0o602) },
		"of another user":         func() error { return errors.Join(write(good, 0o600), os.Chown(name, 65532, -1)) },
		"other content":           func() error { return write(bytes.Replace(good, []byte("x"), []byte("y"), 1), 0o600) },
		"huge":                    func() error { return errors.Join(write(good, 0o600), os.Truncate(name, MaxEntryBytes+1)) },
		"readable by nobody else": func() error { return write(nil, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			if what == "of another user" && os.Geteuid() != 0 {
				t.Skip("changing the owner of a file requires root")
			}
			defer os.RemoveAll(name)
			if err := tamper(); err != nil {
				t.Fatal(err)
			}
			if got := d.Load("x"); len(got.byHash) != 0 {
				t.Errorf("it holds %d objects", len(got.byHash))
			}
			if err := d.Store("x", objectsOf("x")); err != nil {
				t.Error(err)
			}
			if got := d.Load("x"); len(got.byHash) != 1 {
				t.Errorf("then it holds %d objects", len(got.byHash))
			}
			if got := read(t, d.entry("other")); !bytes.Equal(got, good) {
				t.Errorf("another entry has become %q", got)
			}
		})
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestDirectoryWritableByOthersIsRefused checks that a directory in which other users can create or remove entries is
// rejected.
func TestDirectoryWritableByOthersIsRefused(t *testing.T) {
	for _, c := range []struct {
		mode  os.FileMode
		owner int
		want  string
	}{
		{0o700, os.Geteuid(), ""}, {0o755, os.Geteuid(), ""},
		{0o775, os.Geteuid(), "is writable by other users (mode drwxrwxr-x)"},
		{0o777 | os.ModeSticky, os.Geteuid(), "is writable by other users (mode dtrwxrwxrwx)"},
		{0o700, 65532, "belongs to user 65532"},
	} {
		dir := filepath.Join(t.TempDir(), "cache")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		if c.owner != os.Geteuid() {
			if os.Geteuid() != 0 {
				continue // changing the owner requires root
			}
			if err := os.Chown(dir, c.owner, -1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Open(dir)
		want := "open the cache: " + dir + " " + c.want + "; use a new directory inside it, such as " + filepath.Join(dir, "quorate")
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v, user %d: error %v, want %s", c.mode, c.owner, err, c.want)
		}
		if _, err := Open(filepath.Join(dir, "quorate")); err != nil {
			t.Error(err)
		}
	}
}
