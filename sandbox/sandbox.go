//go:build linux

// Package sandbox runs real Kubernetes clusters of one to three nodes on this machine, using programs that it builds
// from source. It requires Linux and root, but neither Docker nor an image registry.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/pki"
	"quorate.dev/quorate/sandbox/progress"
)

// DefaultName is the name of the sandbox if no name is given.
const DefaultName = "quorate"

// Root is the directory that contains the directories of all sandboxes.
const Root = "/var/lib/quorate-sandbox"

// ErrAbsent is returned if the sandbox does not exist.
var ErrAbsent = errors.New("the sandbox does not exist")

// Sandbox is a named sandbox, running or not.
type Sandbox struct {
	Name     string
	Progress progress.Progress // shown to the user; silent by default
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// Named returns the sandbox with the given name.
func Named(name string) (*Sandbox, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("invalid sandbox name %q: use at most 24 lowercase letters, digits and hyphens; the "+
			"name must not start or end with a hyphen", name)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("run the sandbox as root: it creates namespaces, cgroups and mounts")
	}
	return &Sandbox{Name: name}, nil
}

// Dir returns the sandbox's directory, with its state, certificates, logs and data.
func (s *Sandbox) Dir() string { return filepath.Join(Root, s.Name) }

// Kubeconfig returns the path of the administrator's kubeconfig for use on the host.
func (s *Sandbox) Kubeconfig() string { return filepath.Join(s.Dir(), "kubeconfig") }

// KubeconfigInside returns the path of the administrator's kubeconfig for use inside the sandbox's network.
func (s *Sandbox) KubeconfigInside() string { return filepath.Join(s.Dir(), "kubeconfig.inside") }

// LogDir returns the log directory of a machine ("control-plane", "node-1", …). It contains one file per process, and
// pod logs in pods/.
func (s *Sandbox) LogDir(machine string) string { return filepath.Join(s.machineDir(machine), "log") }

func (s *Sandbox) machineDir(name string) string { return filepath.Join(s.Dir(), name) }
func (s *Sandbox) loadedImages() string          { return filepath.Join(s.Dir(), "images") }
func (s *Sandbox) cgroup() string                { return "/quorate-sandbox/" + s.Name }
func (s *Sandbox) machineCgroup(name string) string {
	return s.cgroup() + "/" + name
}
func (s *Sandbox) certificates() pki.Store { return pki.Store{Dir: filepath.Join(s.Dir(), "pki")} }

// machine returns the sandbox's running machine with this name, or nil.
func (s *Sandbox) machine(name string) (*machine.Machine, error) {
	return machine.Find(s.machineDir(name))
}

// controlPlane returns the running control plane machine, which owns the sandbox's network. It returns an error if the
// machine is not running.
func (s *Sandbox) controlPlane() (*machine.Machine, error) {
	m, err := s.machine(layout.ControlPlaneMachine)
	if err == nil && m == nil {
		err = fmt.Errorf("sandbox %s is not up (%w); to start it, run sandbox up --name %s", s.Name, ErrAbsent, s.Name)
	}
	return m, err
}

// replaceFile atomically writes a file that only root can read.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
