// Package procgroup starts programs that do not outlive their parent process.
package procgroup

import "syscall"

// WithParent returns the attributes that make a program end with its parent process, however that ends.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
