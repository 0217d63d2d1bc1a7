//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/sandbox/cgroup"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
)

// Down stops all processes of the sandbox and removes all its files. It relies on the live state instead of the record,
// so it also cleans up after a crash.
func (s *Sandbox) Down(ctx context.Context) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.endProcesses(); err != nil {
		return err
	}
	if err := cgroup.Remove(s.cgroup(), patience); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Dir()); err != nil {
		return fmt.Errorf("remove the directory of sandbox %s: %w", s.Name, err)
	}
	// Directories shared by all sandboxes are removed with the last sandbox.
	return errors.Join(removeIfEmpty(Root), cgroup.RemoveIfEmpty("/quorate-sandbox"))
}

// endProcesses kills the machines and then the processes that were started with Exec.
func (s *Sandbox) endProcesses() error {
	control, err := s.machine(layout.ControlPlaneMachine)
	if err != nil {
		return err
	}
	var network os.FileInfo
	if control != nil {
		// Keep the file open, so that a different network cannot be mistaken for this one.
		file, err := control.OpenNetwork()
		if err != nil {
			return err
		}
		defer file.Close()
		if network, err = file.Stat(); err != nil {
			return fmt.Errorf("identify the network of sandbox %s: %w", s.Name, err)
		}
	}
	machines, err := machine.FindAll(s.Dir())
	if err != nil {
		return err
	}
	for _, m := range machines {
		if err := m.Kill(patience); err != nil {
			return err
		}
	}
	return guests{mark: machine.Marker + "=" + s.Dir(), network: network}.kill()
}

func removeIfEmpty(dir string) error {
	err := os.Remove(dir)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// kill ends a machine as a power failure would, and removes its cgroups.
func (s *Sandbox) kill(m *machine.Machine, name string) error {
	if err := m.Kill(patience); err != nil {
		return err
	}
	return cgroup.Remove(s.machineCgroup(name), patience)
}
