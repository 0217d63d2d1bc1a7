//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"quorate.dev/quorate/sandbox/build"
	"quorate.dev/quorate/sandbox/cgroup"
	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
)

// Status is the observed state of a sandbox.
type Status struct {
	Name       string            `json:"name"`
	Up         bool              `json:"up"` // all machines run, the API server serves, and all nodes are ready
	Problem    string            `json:"problem,omitempty"`
	Kubeconfig string            `json:"kubeconfig"`
	Logs       string            `json:"logs"`
	Memory     int64             `json:"memoryBytes"` // of all processes, including containers
	Machines   []MachineStatus   `json:"machines"`
	Versions   map[string]string `json:"versions"`
	Images     []string          `json:"images"` // present on every node from the start
}

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	PID     int    `json:"pid,omitempty"` // PID of the machine's init process
	// Ready is whether the API server reports a node as ready or, for the control plane, whether the API server serves.
	// It is false if a process of the machine does not work.
	Ready     bool                    `json:"ready"`
	Reason    string                  `json:"reason,omitempty"`
	Processes []machine.ProcessStatus `json:"processes,omitempty"`
}

// Status observes the sandbox without changing it.
func (s *Sandbox) Status(ctx context.Context) (Status, error) {
	if _, err := os.Stat(s.Dir()); errors.Is(err, os.ErrNotExist) {
		return Status{}, fmt.Errorf("inspect sandbox %s: %w", s.Name, ErrAbsent)
	}
	r, err := s.recorded()
	if err != nil {
		return Status{}, err
	}
	status := Status{Name: s.Name, Up: true, Kubeconfig: s.Kubeconfig(), Logs: s.Dir() + "/*/log", Versions: versions(),
		Images: imageNames()}
	status.Memory, err = cgroup.Memory(s.cgroup())
	if err != nil {
		status.Problem = err.Error()
	}
	known, err := s.nodeStatus(ctx)
	if err != nil {
		status.Up, status.Problem = false, err.Error()
	}
	for _, name := range machineNames(r) {
		m, err := s.machineStatus(name)
		if err != nil {
			return Status{}, err
		}
		m.judge(known)
		status.Up = status.Up && m.Running && m.Ready
		status.Machines = append(status.Machines, m)
	}
	return status, nil
}

// nodeStatus returns the status of the nodes from the API server, or an error if the API server cannot be reached.
func (s *Sandbox) nodeStatus(ctx context.Context) (map[string]cluster.NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := cluster.New(s.Kubeconfig())
	if err != nil {
		return nil, err
	}
	if err := c.Ready(ctx); err != nil {
		return nil, fmt.Errorf("check the API server: %w", err)
	}
	return c.Nodes(ctx)
}

func (s *Sandbox) machineStatus(name string) (MachineStatus, error) {
	status := MachineStatus{Name: name}
	m, err := s.machine(name)
	if err != nil || m == nil {
		return status, err
	}
	defer m.Release()
	status.Running, status.PID = true, m.PID
	status.Processes, err = machine.Processes(s.machineDir(name))
	if errors.Is(err, os.ErrNotExist) {
		return status, nil
	}
	return status, err
}

// judge sets Ready, or sets Reason if the machine is not ready. known is nil if the API server could not be reached.
func (m *MachineStatus) judge(known map[string]cluster.NodeStatus) {
	switch node, registered := known[m.Name]; {
	case !m.Running:
		m.Reason = "it is not running"
	case known == nil:
		m.Reason = "the API server is not responding"
	case m.Name == layout.ControlPlaneMachine:
		m.Ready = true
	case !registered:
		m.Reason = "it has not registered"
	case !node.Ready:
		m.Reason = node.Reason
	default:
		m.Ready = true
	}
	if ill := m.ill(); m.Ready && ill != "" {
		m.Ready, m.Reason = false, ill
	}
}

// ill describes the first process that does not work. It returns "" if there is no such process.
func (m *MachineStatus) ill() string {
	for _, p := range m.Processes {
		switch {
		case p.Waiting != "":
			return p.Name + " is waiting for " + p.Waiting
		case p.PID == 0 && !p.Done:
			return p.Name + " is not running"
		}
	}
	return ""
}

func versions() map[string]string {
	return map[string]string{
		"kubernetes": build.KubernetesVersion,
		"containerd": build.ContainerdVersion,
		"coredns":    build.CoreDNSVersion,
	}
}

func imageNames() []string {
	var names []string
	for _, version := range build.EtcdVersions {
		names = append(names, EtcdImage(version))
	}
	return names
}
