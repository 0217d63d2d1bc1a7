package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_RISCV64

var computingHere []uint32

// statAt has a different name on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere are system calls that newer architectures lack.
var filingHere []uint32
