//go:build linux

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/sandbox/machine"
)

// Exec replaces the calling process with a command that runs as if in a pod: in the sandbox's network, with cluster DNS
// and a kubeconfig, and with kubectl and etcdctl if the host lacks them. Apart from that, the command uses the host's
// environment. Exec returns only if it fails.
func (s *Sandbox) Exec(command []string) error {
	control, err := s.controlPlane()
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"KUBECONFIG":   s.KubeconfigInside(),
		"PATH":         os.Getenv("PATH") + string(filepath.ListSeparator) + s.tools(),
		machine.Marker: s.Dir(),
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set the environment: %w", err)
		}
	}
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	runtime.LockOSThread() // the following calls affect only this thread, which then becomes the command
	if err := control.EnterNetwork(); err != nil {
		return err
	}
	if err := s.useClusterDNS(); err != nil {
		return err
	}
	if err := unix.Exec(program, command, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// useClusterDNS moves the thread to its own mount namespace, in which resolv.conf is the sandbox's.
func (s *Sandbox) useClusterDNS() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("create a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("isolate mounts from the host: %w", err)
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("find the host's resolv.conf, to cover it: %w", err)
	}
	if err := unix.Mount(filepath.Join(s.Dir(), "resolv.conf"), target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover %s: %w", target, err)
	}
	return nil
}
