package confined

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// self returns the path of the running program, which works even if its file has been replaced.
func self() (string, error) { return "/proc/self/exe", nil }

// errNoFilter is returned on architectures without a seccomp filter, where sources cannot be read safely.
var errNoFilter = fmt.Errorf(
	"sources are read only under a seccomp filter, which this version does not have for %s: run Quorate on amd64, "+
		"arm64, loong64, ppc64le or riscv64", runtime.GOARCH)

// confine restricts this process: it can use memory and time up to the limits, and communicate over its existing pipes.
// The layers overlap, in case one of them has a flaw. The child does not run without the seccomp filter.
func confine(l Limits) error {
	if !filters {
		return errNoFilter
	}
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(200) // at 200, reading 1,000 clusters takes 10 % more time than at 400, but 50 MiB less memory
	debug.SetMemoryLimit(l.Memory / 10 * 8)
	debug.SetTraceback("none")
	endAtSignal()
	used, err := dataBytes()
	if err != nil {
		return err
	}
	if err := closeInherited(); err != nil {
		return err
	}
	if err := withoutFiles(); err != nil {
		return fmt.Errorf("restrict the process with Landlock: %w", err)
	}
	if err := bound(l, used, 0); err != nil {
		return err
	}
	if err := install(onlyComputing(os.Getpid())); err != nil {
		return fmt.Errorf("%w; sources are read only under a seccomp filter: use a kernel with CONFIG_SECCOMP_FILTER, "+
			"and a container runtime whose own profile allows prctl(2) and seccomp(2)", err)
	}
	return nil
}

// bound sets the kernel's resource limits to l and to the given number of open files. The memory in l is added to the
// memory already used.
func bound(l Limits, used, files uint64) error {
	seconds := uint64(max(1, math.Ceil(l.CPU.Seconds())))
	for _, limit := range []struct {
		resource  int
		soft, max uint64
	}{
		{syscall.RLIMIT_DATA, used + uint64(l.Memory), used + uint64(l.Memory)},
		{syscall.RLIMIT_CPU, seconds, seconds + 5},
		{syscall.RLIMIT_CORE, 0, 0},
		{syscall.RLIMIT_FSIZE, uint64(l.FileBytes), uint64(l.FileBytes)},
		{syscall.RLIMIT_NOFILE, files, files},
	} {
		if err := lower(limit.resource, limit.soft, limit.max); err != nil {
			return fmt.Errorf("set resource limit %d: %w", limit.resource, err)
		}
	}
	return nil
}

// Bound sets kernel limits on this process's processor time and on its memory, in addition to the memory already used.
// It also disables core dumps. Unlike a confined child, the process can use files.
func Bound(memory int64, cpu time.Duration) error {
	used, err := dataBytes()
	if err != nil {
		return err
	}
	seconds := uint64(max(1, math.Ceil(cpu.Seconds())))
	for _, limit := range []struct {
		resource int
		most     uint64
	}{{syscall.RLIMIT_DATA, used + uint64(memory)}, {syscall.RLIMIT_CPU, seconds}, {syscall.RLIMIT_CORE, 0}} {
		if err := lower(limit.resource, limit.most, limit.most); err != nil {
			return fmt.Errorf("set resource limit %d: %w", limit.resource, err)
		}
	}
	return nil
}

// lower sets a limit, unless it is already lower.
func lower(resource int, soft, most uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: min(soft, now.Max), Max: min(most, now.Max)})
}

const maxStack = 16 << 20

// endAtSignal ends the process when its processor time is used up. The runtime ignores SIGXCPU, and the signal sent at
// the hard limit does not leave a message.
func endAtSignal() {
	overtime := make(chan os.Signal, 1)
	signal.Notify(overtime, syscall.SIGXCPU)
	go func() {
		<-overtime
		os.Exit(exitOvertime) //nolint:forbidigo // the process does not end by itself
	}()
}

// dataBytes returns the memory that counts toward RLIMIT_DATA.
func dataBytes() (uint64, error) {
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(content))
	if len(fields) < 6 {
		return 0, fmt.Errorf("/proc/self/statm contains %q", content)
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}

// peak returns the peak memory of an ended process, in bytes.
func peak(ended *os.ProcessState) int64 {
	usage, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) << 10 //nolint:unconvert // it has 32 bits on some architectures
}
