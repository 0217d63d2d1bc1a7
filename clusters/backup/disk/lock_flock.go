//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a file exclusively, or returns ErrLocked.
func tryLock(file *os.File) error { return flock(file, unix.LOCK_EX) }

// tryShare takes a shared lock on a file, or returns ErrLocked.
func tryShare(file *os.File) error { return flock(file, unix.LOCK_SH) }

func flock(file *os.File, how int) error {
	err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
