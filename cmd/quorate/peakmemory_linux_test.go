package main

import (
	"os"
	"syscall"
)

// peakOf returns the peak memory of a process, in bytes.
func peakOf(ended *os.ProcessState) int64 { return ended.SysUsage().(*syscall.Rusage).Maxrss << 10 }
