package kubetest

import "syscall"

// withParent makes a program end with the test that started it, however that ends.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
