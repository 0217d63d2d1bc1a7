package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_X86_64

// computingHere are those that other architectures do not have: where a thread's own memory is, and
// what a C library asks for.
var computingHere = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT}

// statAt is called otherwise on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere are those that newer architectures do not have.
var filingHere = []uint32{unix.SYS_RENAMEAT}
