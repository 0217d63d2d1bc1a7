//go:build !linux

// Package procgroup starts programs that do not outlive their parent process.
package procgroup

import "syscall"

// WithParent returns nil on this platform: the parent process has to end the program.
func WithParent() *syscall.SysProcAttr { return nil }
