//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package confined

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filing lists the system calls that open, read and write files, which are allowed with any arguments. Landlock
// restricts which files they can use. Calls that Landlock does not restrict, such as chmod and utimensat, are excluded,
// except for calls that return the size, mode and times of a file, which Go requires. None of the listed calls can make
// the kernel send a signal, as fcntl and ioctl can.
var filing = []uint32{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FSTAT, statAt, unix.SYS_STATX, unix.SYS_LSEEK, unix.SYS_PREAD64,
	unix.SYS_PWRITE64, unix.SYS_READV,
	unix.SYS_WRITEV, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT,
	unix.SYS_RENAMEAT2, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE, unix.SYS_SENDFILE, unix.SYS_PIPE2, unix.SYS_GETCWD, unix.SYS_UNAME,
	unix.SYS_GETUID, unix.SYS_GETEUID,
	unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_PPOLL, unix.SYS_DUP3,
}

// connecting lists the system calls that connect and communicate. Accepting connections and passing open files are
// excluded.
var connecting = []uint32{
	unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT,
	unix.SYS_GETSOCKOPT, unix.SYS_SENDTO,
	unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN,
}

// reaching returns the filter for the process pid. It allows reading and writing files and, if network is set, outgoing
// connections.
func reaching(pid int, network bool) []bpf.Instruction {
	calls := slices.Concat(filing, filingHere)
	decisions := [][]bpf.Instruction{when(unix.SYS_FCNTL, oneOf(1,
		unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW,
		unix.F_DUPFD_CLOEXEC)...)}
	if network {
		calls = append(calls, connecting...)
		decisions = append(decisions, when(unix.SYS_SOCKET, sockets...))
	}
	return computingAnd(pid, calls, decisions...)
}

// socketType masks the type in an argument of socket(2). The remaining bits are flags.
const socketType = 0xf

// sockets decides which sockets may be created: TCP, UDP, and the netlink socket that returns the names of network
// interfaces. Other families could reach other processes on the machine, other netlink sockets could reach other kernel
// subsystems, and raw sockets could send arbitrary headers.
var sockets = slices.Concat(
	[]bpf.Instruction{argument(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipFalse: 3}},
	[]bpf.Instruction{argument(2), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 7}, allow},
	[]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_INET6, SkipTrue: 4}},
	[]bpf.Instruction{argument(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType}},
	[]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_DGRAM, SkipTrue: 1}},
	[]bpf.Instruction{refuse, allow},
)

// oneOf allows a call if its argument i is one of the values.
func oneOf(i uint32, values ...uint32) []bpf.Instruction {
	decision := []bpf.Instruction{argument(i)}
	for _, value := range values {
		decision = append(decision, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: 1}, allow)
	}
	return append(decision, refuse)
}
