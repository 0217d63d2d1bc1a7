package main

import (
	"os"
	"syscall"
)

// peakOf is the most memory that a process has had, in bytes.
func peakOf(ended *os.ProcessState) int64 { return ended.SysUsage().(*syscall.Rusage).Maxrss << 10 }
