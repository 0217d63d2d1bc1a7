//go:build !linux

package main

import "os"

// peakOf returns 0, because the peak is unknown on this platform.
func peakOf(*os.ProcessState) int64 { return 0 }
