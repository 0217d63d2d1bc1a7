//go:build unix

package child

import (
	"os/exec"
	"syscall"
)

// InGroup makes a program the first of a group of processes of its own, which Kill ends as a whole.
func InGroup(command *exec.Cmd) {
	if command.SysProcAttr = WithParent(); command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	command.Cancel = func() error { return Kill(command) }
}

// Kill ends a program that was started InGroup, and all that it has started.
func Kill(command *exec.Cmd) error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
