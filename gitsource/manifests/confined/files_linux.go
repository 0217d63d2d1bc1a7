package confined

import (
	"fmt"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// withoutFiles takes the right to open files and to reach ports, where the kernel has Landlock. The
// filter refuses as much: this is for a kernel whose new system calls open what the old ones did.
// Signals stay with the filter, as kernels before 6.15 take the threads of a process apart.
func withoutFiles() error {
	all := landlock.V11
	return landlock.Config{HandledAccessFS: all.HandledAccessFS, HandledAccessNet: all.HandledAccessNet}.BestEffort().
		Restrict()
}

// closeInherited closes what the parent itself was started with and did not mean to hand on.
func closeInherited() error {
	const descriptors = "/proc/self/fd"
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return fmt.Errorf("find open files: %w", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			// That directory, closed by now, or the runtime's own: what has passed from one program
			// to the next has no such mark.
			continue
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close descriptor %d: %w", fd, err)
		}
	}
	return nil
}
