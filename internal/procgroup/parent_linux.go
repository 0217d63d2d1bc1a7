// Package procgroup starts programs that do not outlive their parent process.
package procgroup

import "syscall"

// WithParent returns attributes that make the kernel kill a program when its parent process ends for any reason.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
