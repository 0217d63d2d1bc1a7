package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_PPC64LE

var computingHere []uint32

// statAt is the fstatat system call, which has different names on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere lists system calls that newer architectures lack.
var filingHere = []uint32{unix.SYS_RENAMEAT}
