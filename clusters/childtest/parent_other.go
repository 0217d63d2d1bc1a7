//go:build !linux

// Package childtest ends programs that tests start. It is for tests alone.
package childtest

import "syscall"

// WithParent leaves it to the test to end the programs that it started.
func WithParent() *syscall.SysProcAttr { return nil }
