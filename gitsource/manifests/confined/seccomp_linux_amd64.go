package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_X86_64

// computingHere lists system calls that other architectures lack: for thread-local storage, and for a C library.
var computingHere = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT}

// statAt is the fstatat system call, which has different names on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere lists system calls that newer architectures lack.
var filingHere = []uint32{unix.SYS_RENAMEAT}
