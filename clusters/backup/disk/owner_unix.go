//go:build unix

package disk

import (
	"os"
	"path/filepath"
	"syscall"
)

// ChangedByOthers reports whether users other than root can change a file or directory.
func ChangedByOthers(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	writable := info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0
	return info.Sys().(*syscall.Stat_t).Uid != 0 || writable, nil
}

// LedByOthers returns the first directory above path in which users other than root can replace a component of the
// path, or "". Sticky directories do not count, because only the owner of an entry can replace it there.
func LedByOthers(path string) (string, error) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return "", err
		}
		shared := info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0
		if info.Sys().(*syscall.Stat_t).Uid != 0 || shared {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// Owner returns the ID of the user that owns a file.
func Owner(info os.FileInfo) (uid int, known bool) {
	return int(info.Sys().(*syscall.Stat_t).Uid), true
}
