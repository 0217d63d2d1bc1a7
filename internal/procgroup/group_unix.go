//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// InGroup makes command start in its own process group, so that Kill also ends its children.
func InGroup(command *exec.Cmd) {
	if command.SysProcAttr = WithParent(); command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	command.Cancel = func() error { return Kill(command) }
}

// Kill kills a program that was prepared by InGroup, and its children.
func Kill(command *exec.Cmd) error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
