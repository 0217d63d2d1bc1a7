//go:build !unix

package child

import "os/exec"

// InGroup leaves a program among the others.
func InGroup(command *exec.Cmd) { command.Cancel = func() error { return Kill(command) } }

// Kill ends a program.
func Kill(command *exec.Cmd) error { return command.Process.Kill() }
