package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Lease keeps everybody from opening the file for writing, until it is closed, or for the time that the
// system has for that (/proc/sys/fs/lease-break-time). ErrLocked says that somebody has it open so, as a
// program does that waits for the lock of a database.
func (s *Shared) Lease() error {
	_, err := unix.FcntlInt(s.file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if errors.Is(err, unix.EAGAIN) {
		return ErrLocked
	}
	return err
}

// Leased reports whether nobody has tried to open the file for writing since Lease.
func (s *Shared) Leased() bool {
	has, err := unix.FcntlInt(s.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && has == unix.F_RDLCK
}
