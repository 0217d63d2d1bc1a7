package confined

import (
	"fmt"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// withoutFiles drops the rights to open files and to use ports, if the kernel has Landlock. The seccomp filter already
// refuses both, but a newer kernel may have new system calls that do the same. Landlock does not restrict signals here,
// because kernels before 6.15 would also restrict signals between the threads of a process. The filter restricts them
// instead.
func withoutFiles() error {
	all := landlock.V11
	return landlock.Config{HandledAccessFS: all.HandledAccessFS, HandledAccessNet: all.HandledAccessNet}.BestEffort().
		Restrict()
}

// closeInherited closes files that the parent inherited and did not intend to pass on.
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
			// This is the directory itself, which is already closed, or a file opened by the Go runtime. Inherited
			// files are not marked close-on-exec.
			continue
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close descriptor %d: %w", fd, err)
		}
	}
	return nil
}
