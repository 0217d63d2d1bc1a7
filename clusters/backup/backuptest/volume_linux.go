package backuptest

import (
	"os"
	"syscall"
	"testing"
)

// Volume mounts a separate file system of the given size, such as "8k". If the test does not run as root, which
// mounting requires, Volume skips it.
func Volume(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting is not allowed: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(os.NewSyscallError("umount", err))
		}
	})
	return dir
}

// Grow enlarges a Volume.
func Grow(t testing.TB, dir, size string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
		t.Fatal(err)
	}
}
