//go:build !linux

package confined

import (
	"os"
	"runtime/debug"
	"time"
)

func self() (string, error) { return os.Executable() }

// confine sets the limits that are available on platforms without confinement, which are not used for passes. On these
// platforms, rendering ends at its deadline.
func confine(l Limits) error {
	debug.SetMaxStack(16 << 20)
	debug.SetMemoryLimit(l.Memory)
	debug.SetTraceback("none")
	return nil
}

// Bound only sets the garbage collector's memory limit on this platform.
func Bound(memory int64, _ time.Duration) error {
	debug.SetMemoryLimit(memory)
	return nil
}

// confineTo sets the same limits as confine on this platform, but allows at least 1 GiB of memory.
func confineTo(_ Reach, l Limits) error { return confine(Limits{Memory: max(l.Memory, 1<<30)}) }

func peak(*os.ProcessState) int64 { return 0 }

// Landlock reports that Landlock is available only on Linux.
func Landlock() string { return "missing: it is available only on Linux" }

// Hide does nothing on this platform.
func Hide() {}
