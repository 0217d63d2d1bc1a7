package confined

import (
	"errors"
	"fmt"

	access "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Landlock returns a description of the support for Landlock on this machine, for display. Landlock is always used to
// the extent that it is supported.
func Landlock() string { return describeLandlock(access.LandlockGetABIVersion()) }

func describeLandlock(version int, err error) string {
	switch {
	case err == nil && version > 0:
		return fmt.Sprintf("in use (ABI %d)", version)
	case errors.Is(err, unix.ENOSYS):
		return "missing: the kernel does not support it"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "missing: it is disabled in the kernel (lsm= on the kernel command line)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return "missing: the container runtime forbids landlock_create_ruleset(2)"
	}
	return fmt.Sprintf("missing: %v", err)
}
