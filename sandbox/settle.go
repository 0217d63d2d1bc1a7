//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
)

// works reports whether all nodes, the pod network and all processes are working.
func (s *Sandbox) works(ctx context.Context, c *cluster.Cluster, nodes []layout.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, n := range nodes {
		if c.NodeReady(ctx, n.Name()) != nil || c.PodNetwork(ctx, n.Name()) != nil {
			return false
		}
	}
	return s.ill(nodes) == nil
}

// step is a condition to wait for, and the process whose log is most relevant if the condition is not met.
type step struct {
	doing, done      string
	machine, process string
	try              func(context.Context) error
}

// settle waits until the whole sandbox is working.
func (s *Sandbox) settle(ctx context.Context, c *cluster.Cluster, nodes []layout.Node) error {
	steps := []step{
		{"starting the control plane", "control plane is ready", layout.ControlPlaneMachine, "kube-apiserver", c.Ready},
	}
	for _, n := range nodes {
		name := n.Name()
		steps = append(steps, step{"starting " + name, name + " is ready", name, "kubelet",
			func(ctx context.Context) error {
				return c.NodeReady(ctx, name)
			}})
	}
	for _, n := range nodes {
		name := n.Name()
		steps = append(steps, step{"probing pods of " + name, "pods of " + name + " can reach a Service by name", name,
			"kubelet", func(ctx context.Context) error {
				return c.PodNetwork(ctx, name)
			}})
	}
	steps = append(steps, step{"starting the other " +
		"components", "all components are running", layout.ControlPlaneMachine, "coredns",
		func(context.Context) error {
			return s.ill(nodes)
		}})
	for _, st := range steps {
		if err := s.Progress.Do(st.doing, st.done, 0, func() error { return s.await(ctx, st) }); err != nil {
			return err
		}
	}
	return nil
}

// await gives up after long, or as soon as a process has exited tooOften times.
const (
	long     = 2 * time.Minute
	tooOften = 5
)

// await retries the step until it succeeds.
func (s *Sandbox) await(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var last error
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := st.try(try)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // not the error from await's own timeout
		}
		if err := s.ailing(); err != nil {
			return fmt.Errorf("%s: %w", st.doing, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w after %s: %w\n%s", st.doing, ctx.Err(), long, last,
				s.tail(st.machine, st.process))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ill returns an error that names a process that does not work, on the control plane or one of the nodes.
func (s *Sandbox) ill(nodes []layout.Node) error {
	names := []string{layout.ControlPlaneMachine}
	for _, n := range nodes {
		names = append(names, n.Name())
	}
	for _, name := range names {
		m, err := s.machineStatus(name)
		if err != nil {
			return err
		}
		if ill := m.ill(); ill != "" {
			return fmt.Errorf("on %s, %s", name, ill)
		}
	}
	return nil
}

// ailing returns an error if a machine has ended or one of its processes keeps exiting.
func (s *Sandbox) ailing() error {
	r, err := s.recorded()
	if err != nil {
		return err
	}
	for _, name := range machineNames(r) {
		m, err := s.machine(name)
		if err != nil {
			return err
		}
		if m == nil {
			return fmt.Errorf("machine %s has ended\n%s", name, s.tail(name, "machine"))
		}
		m.Release()
		processes, err := machine.Processes(s.machineDir(name))
		if errors.Is(err, os.ErrNotExist) {
			continue // init has not written the file yet
		}
		if err != nil {
			return err
		}
		for _, p := range processes {
			if p.Restarts >= tooOften && p.PID == 0 {
				return fmt.Errorf("%s of %s keeps exiting (%s)\n%s", p.Name, name, p.LastExit, s.tail(name, p.Name))
			}
		}
	}
	return nil
}

func machineNames(r record) []string {
	names := []string{layout.ControlPlaneMachine}
	for _, n := range r.nodes() {
		names = append(names, n.Name())
	}
	return names
}

// tail returns the end of a process's log, and the path of the log.
func (s *Sandbox) tail(machineName, process string) string {
	const lines = 20
	path := filepath.Join(s.LogDir(machineName), process+".log")
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Sprintf("%s:\n%s", path, strings.Join(all[max(0, len(all)-lines):], "\n"))
}
