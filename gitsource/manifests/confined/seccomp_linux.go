//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package confined

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// computing lists the system calls of a Go program that only computes and uses its existing pipes: for the scheduler,
// memory, clock, signals and exit. They are allowed with any arguments. None of these calls names a file, an address or
// another process. The most frequent calls come first.
var computing = []uint32{
	unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_NANOSLEEP,
	unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EPOLL_CTL,
	unix.SYS_CLOSE,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_MINCORE,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, // for threads of a C library, under the race detector
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// argument loads the lower half of a system call argument. For the arguments checked here, the kernel reads only the
// lower half.
func argument(i uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: 16 + 8*i, Size: 4} }

// filters reports that a filter exists for this architecture. System call numbers differ between architectures, and so
// do the offsets of arguments on some architectures.
const filters = true

const (
	systemCall   = 0 // offset of the system call number
	architecture = 4
)

var (
	allow  = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	refuse = fail(unix.EPERM)
	kill   = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
)

func fail(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// onlyComputing returns the filter for the process pid. Other calls fail with EPERM instead of ending the process,
// because libraries look for optional files, and a later version of Go may try one call before falling back to another.
func onlyComputing(pid int) []bpf.Instruction { return computingAnd(pid, nil) }

// computingAnd returns the filter for a process that computes. It also allows the given calls with any arguments, and
// everything that the decisions allow.
func computingAnd(pid int, calls []uint32, decisions ...[]bpf.Instruction) []bpf.Instruction {
	const (
		newThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM |
			unix.CLONE_THREAD |
			unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
		everyFlag = 1<<32 - 1
	)
	toItself := []bpf.Instruction{argument(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(pid), SkipTrue: 1},
		allow, refuse}
	withoutCode := []bpf.Instruction{argument(2), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.PROT_EXEC, SkipTrue: 1},
		allow, refuse}
	filter := []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArchitecture, SkipTrue: 1}, kill,
		bpf.LoadAbsolute{Off: systemCall, Size: 4},
	}
	for _, number := range slices.Concat(computing, computingHere, calls) {
		filter = append(filter, when(number, allow)...)
	}
	return slices.Concat(filter, slices.Concat(decisions...),
		when(unix.SYS_MMAP, withoutCode...), when(unix.SYS_MPROTECT, withoutCode...),
		when(unix.SYS_TGKILL, toItself...), when(unix.SYS_KILL, toItself...),
		when(unix.SYS_CLONE, argument(0),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: everyFlag &^ newThread, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1}, allow, refuse),
		// The flags of clone3 are in memory, where a filter cannot read them. Programs have to use clone instead.
		when(unix.SYS_CLONE3, fail(unix.ENOSYS)),
		[]bpf.Instruction{refuse})
}

// when applies instructions to one system call. The instructions must end with a return.
func when(number uint32, do ...bpf.Instruction) []bpf.Instruction {
	return append([]bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(do))}}, do...)
}

// install permanently applies a filter to all current and future threads of the process.
func install(filter []bpf.Instruction) error {
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	runtime.LockOSThread() // no_new_privs applies to this thread; installing the filter sets it on the other threads
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs with prctl(2): %w", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})))
	switch {
	case errno != 0:
		return fmt.Errorf("set a filter with seccomp(2): %w", errno)
	case thread != 0:
		return errors.New("set a filter with seccomp(2): a thread has a different filter")
	}
	return nil
}
