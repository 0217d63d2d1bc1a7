//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// inPlace opens what is there: no target of a link, and a pipe without a writer at once.
const inPlace = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// changeable says who else than this user, and root, can change a file or what is in a directory;
// empty if nobody can.
func changeable(info fs.FileInfo) string {
	status, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "has no owner"
	case status.Uid != 0 && int(status.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", status.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("can be written by others (mode %s)", info.Mode())
	}
	return ""
}
