//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// inPlace opens a file without following links, and without waiting if it is a pipe without a writer.
const inPlace = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// changeable returns why a user other than the current user and root can change a file or a directory's content, or ""
// if only these two can.
func changeable(info fs.FileInfo) string {
	status, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return "has no owner"
	case status.Uid != 0 && int(status.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", status.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("is writable by other users (mode %s)", info.Mode())
	}
	return ""
}
