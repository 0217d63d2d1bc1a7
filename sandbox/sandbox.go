//go:build linux

// Package sandbox runs real Kubernetes clusters of one to three nodes on this
// machine, from programs that it builds from source. It needs Linux and root,
// and neither Docker nor an image registry.
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

// DefaultName is the name of the sandbox that is meant when none is given.
const DefaultName = "quorate"

// Root is the directory below which every sandbox has its own.
const Root = "/var/lib/quorate-sandbox"

// ErrAbsent says that there is no sandbox of that name.
var ErrAbsent = errors.New("there is no such sandbox")

// Sandbox is one named sandbox, whether it runs or not.
type Sandbox struct {
	Name     string
	Progress progress.Progress // what happens, for people; silent by default
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// Named gives the sandbox of that name.
func Named(name string) (*Sandbox, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("name a sandbox with at most 24 small letters, digits and inner hyphens: %q", name)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("run a sandbox as root: it makes namespaces, cgroups and mounts")
	}
	return &Sandbox{Name: name}, nil
}

// Dir is the sandbox's directory: state, certificates, logs and data.
func (s *Sandbox) Dir() string { return filepath.Join(Root, s.Name) }

// Kubeconfig is the configuration of an administrator's client on the host.
func (s *Sandbox) Kubeconfig() string { return filepath.Join(s.Dir(), "kubeconfig") }

// KubeconfigInside is the same for a client inside the sandbox's network.
func (s *Sandbox) KubeconfigInside() string { return filepath.Join(s.Dir(), "kubeconfig.inside") }

// LogDir holds the logs of a machine ("control-plane", "node-1", …), one file
// per process, and below pods/ those of its pods.
func (s *Sandbox) LogDir(machine string) string { return filepath.Join(s.machineDir(machine), "log") }

func (s *Sandbox) machineDir(name string) string { return filepath.Join(s.Dir(), name) }
func (s *Sandbox) loadedImages() string          { return filepath.Join(s.Dir(), "images") }
func (s *Sandbox) cgroup() string                { return "/quorate-sandbox/" + s.Name }
func (s *Sandbox) machineCgroup(name string) string {
	return s.cgroup() + "/" + name
}
func (s *Sandbox) certificates() pki.Store { return pki.Store{Dir: filepath.Join(s.Dir(), "pki")} }

// machine gives the sandbox's running machine of that name, or nil.
func (s *Sandbox) machine(name string) (*machine.Machine, error) {
	return machine.Find(s.machineDir(name))
}

// controlPlane gives the running machine that holds the network.
func (s *Sandbox) controlPlane() (*machine.Machine, error) {
	m, err := s.machine(layout.ControlPlaneMachine)
	if err == nil && m == nil {
		err = fmt.Errorf("sandbox %s is not up (%w): start it with: sandbox up --name %s", s.Name, ErrAbsent, s.Name)
	}
	return m, err
}

// replaceFile writes a file that only root may read, whole or not at all.
func replaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
