//go:build !linux

package confined

import (
	"os"
	"runtime/debug"
	"time"
)

func self() (string, error) { return os.Executable() }

// confine bounds what it can on systems that nobody runs passes on: a rendering there ends at its
// deadline.
func confine(l Limits) error {
	debug.SetMaxStack(16 << 20)
	debug.SetMemoryLimit(l.Memory)
	debug.SetTraceback("none")
	return nil
}

// Bound bounds the memory there for the garbage collector alone.
func Bound(memory int64, _ time.Duration) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// confineTo bounds nothing there but the stack.
func confineTo(_ Reach, l Limits) error { return confine(Limits{Memory: max(l.Memory, 1<<30)}) }

func peak(*os.ProcessState) int64 { return 0 }

// Landlock is part of Linux.
func Landlock() string { return "missing: it is part of Linux" }

// Hide has no counterpart there.
func Hide() {}
