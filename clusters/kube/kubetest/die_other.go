//go:build !linux

package kubetest

import "syscall"

// withParent leaves it to the test to end the programs that it started.
func withParent() *syscall.SysProcAttr { return nil }
