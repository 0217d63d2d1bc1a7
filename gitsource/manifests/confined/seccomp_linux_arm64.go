package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_AARCH64

var computingHere []uint32

// statAt is the fstatat system call, which has different names on other architectures.
const statAt = unix.SYS_FSTATAT

// filingHere lists system calls that newer architectures lack.
var filingHere = []uint32{unix.SYS_RENAMEAT}
