package confined

import "golang.org/x/sys/unix"

const auditArchitecture = unix.AUDIT_ARCH_LOONGARCH64

var computingHere []uint32

// statAt is called otherwise on other architectures.
const statAt = unix.SYS_NEWFSTATAT

// filingHere are those that newer architectures do not have.
var filingHere []uint32
