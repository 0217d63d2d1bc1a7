// Package child starts programs that do not outlive whoever started them.
package child

import "syscall"

// WithParent makes a program end with the process that started it, however that ends.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
