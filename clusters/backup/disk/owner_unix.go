//go:build unix

package disk

import (
	"os"
	"path/filepath"
	"syscall"
)

// ChangedByOthers reports whether others than root may change a file or a directory.
func ChangedByOthers(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, err
	}
	writable := info.Mode()&os.ModeSymlink == 0 && info.Mode().Perm()&0o022 != 0
	return info.Sys().(*syscall.Stat_t).Uid != 0 || writable, nil
}

// LedByOthers is the first directory above a path in which others than root may put something else in place of
// what the path leads through; empty if there is none. In a sticky directory only the owner may.
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
