package main

import (
	"fmt"
	"math"
	"syscall"
	"time"
)

// boundProcess has the kernel keep this process within so many bytes of memory, and so much processor time.
// Bounds that are lower already stay.
func boundProcess(memory uint64, cpu time.Duration) error {
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_DATA: memory,
		syscall.RLIMIT_CPU:  uint64(math.Ceil(cpu.Seconds())),
		syscall.RLIMIT_CORE: 0,
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("read resource limit %d: %w", resource, err)
		}
		most = min(most, now.Max)
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}
