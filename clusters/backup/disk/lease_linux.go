package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Lease prevents other processes from opening the file for writing until s is closed, or for as long as the system
// allows (/proc/sys/fs/lease-break-time). It returns ErrLocked if a process already has the file open for writing, for
// example because the process is waiting for the lock of a database.
func (s *Shared) Lease() error {
	_, err := unix.FcntlInt(s.file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if errors.Is(err, unix.EAGAIN) {
		return ErrLocked
	}
	return err
}

// Leased reports whether no process has tried to open the file for writing since Lease.
func (s *Shared) Leased() bool {
	has, err := unix.FcntlInt(s.file.Fd(), unix.F_GETLEASE, 0)
	return err == nil && has == unix.F_RDLCK
}
