package confined

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// execve makes the system call directly, because syscall.Exec does other work first. name and argument must be
// NUL-terminated.
func execve(name, argument []byte) error {
	arguments := []*byte{&name[0], &argument[0], nil}
	return errnoOf(unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&arguments[0])), 0))
}
