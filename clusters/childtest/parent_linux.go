// Package childtest ends programs that tests start. It is for tests alone.
package childtest

import "syscall"

// WithParent makes a program end with the test that started it, however that ends.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
