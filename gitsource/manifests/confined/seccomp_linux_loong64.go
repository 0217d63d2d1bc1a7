package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_LOONGARCH64

var computingHere []uint32

// statAt is the fstatat system call, which has different names on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere is empty: this architecture lacks the older system calls.
var filingHere []uint32
