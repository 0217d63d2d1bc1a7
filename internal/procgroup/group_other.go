//go:build !unix

package procgroup

import "os/exec"

// InGroup does not create a process group on this platform, so Kill ends only the program itself.
func InGroup(command *exec.Cmd) { command.Cancel = func() error { return Kill(command) } }

// Kill kills a program.
func Kill(command *exec.Cmd) error { return command.Process.Kill() }
