//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"quorate.dev/quorate/sandbox/cgroup"
	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/controlplane"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/node"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Up brings up the sandbox with the given number of nodes, or with the current number if nodes is 0. It returns when
// every node is ready and a pod on each node can reach a Service by name. Components that already run as specified are
// not restarted.
func (s *Sandbox) Up(ctx context.Context, nodes int) error {
	if _, err := (record{}).with(nodes); err != nil {
		return err
	}
	programs, err := Build(ctx, s.Progress)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	had, err := s.recorded()
	if err != nil {
		return err
	}
	wanted, err := had.with(nodes)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.loadedImages(), 0o755); err != nil {
		return fmt.Errorf("create the directory of loaded images: %w", err)
	}
	if err := programs.LinkTools(s.tools()); err != nil {
		return err
	}
	started, err := s.startMachines(programs, &wanted)
	if err != nil {
		return err
	}
	c, err := cluster.New(s.Kubeconfig())
	if err != nil {
		return err
	}
	if !started && s.works(ctx, c, wanted.nodes()) {
		return nil
	}
	return s.settle(ctx, c, wanted.nodes())
}

// startMachines starts every machine that is not running as specified, and reports whether it started any machine.
func (s *Sandbox) startMachines(programs Programs, wanted *record) (started bool, err error) {
	control, began, err := s.startControlPlane(programs, wanted)
	if err != nil {
		return false, err
	}
	for _, n := range wanted.nodes() {
		restarted, err := s.startNode(programs, n, control, began)
		if err != nil {
			return false, err
		}
		started = started || restarted
	}
	return started || began, nil
}

func (s *Sandbox) startControlPlane(programs Programs, wanted *record) (m *machine.Machine, started bool, err error) {
	spec, err := controlplane.Spec(controlplane.Config{
		Dir:          s.machineDir(layout.ControlPlaneMachine),
		Cgroup:       s.machineCgroup(layout.ControlPlaneMachine),
		Kubernetes:   programs.dir("kubernetes"),
		Etcd:         programs.etcd(),
		CoreDNS:      programs.dir("coredns"),
		Certificates: s.certificates(),
	})
	if err != nil {
		return nil, false, err
	}
	if m, err = s.keepOrKill(spec); err != nil || m != nil {
		if err == nil {
			err = s.remember(*wanted)
		}
		return m, false, err
	}
	listener, err := listen(wanted.Port)
	if err != nil {
		return nil, false, err
	}
	defer listener.Close()
	wanted.Port = listener.Addr().(*net.TCPAddr).Port
	if err := errors.Join(s.remember(*wanted), s.writeClientFiles(wanted.Port)); err != nil {
		return nil, false, err
	}
	m, err = machine.Start(spec, nil, listener)
	return m, true, err
}

// listen listens on the given port, so that existing kubeconfigs remain valid. If port is 0 or not available, it uses a
// free port.
func listen(port int) (*net.TCPListener, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback, Port: port})
	if err != nil && port != 0 {
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback})
	}
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the API server: %w", err)
	}
	return listener, nil
}

// startNode starts the node's machine unless it is already running as specified. A machine that is in the network of a
// previous control plane is restarted.
func (s *Sandbox) startNode(
	programs Programs, n layout.Node, control *machine.Machine, newNetwork bool,
) (started bool, err error) {
	spec, err := node.Spec(node.Config{
		Node:         n,
		Dir:          s.machineDir(n.Name()),
		Cgroup:       s.machineCgroup(n.Name()),
		Kubernetes:   programs.dir("kubernetes"),
		Containerd:   programs.dir("containerd"),
		ImageCache:   programs.ImageDir,
		Images:       programs.Images,
		LoadedImages: s.loadedImages(),
		Certificates: s.certificates(),
	})
	if err != nil {
		return false, err
	}
	m, err := s.keepOrKill(spec)
	if err != nil {
		return false, err
	}
	if m != nil && !newNetwork {
		return false, nil
	}
	if m != nil {
		if err := s.kill(m, n.Name()); err != nil {
			return false, err
		}
	}
	if err := control.RemoveLinks(n.PodCIDR()); err != nil {
		return false, err
	}
	_, err = machine.Start(spec, control, nil)
	return true, err
}

// keepOrKill returns the running machine if it matches the spec. It kills a machine that does not match, so that the
// machine can be started again with its data. If the machine has already ended, it removes the machine's cgroups.
func (s *Sandbox) keepOrKill(spec machine.Spec) (*machine.Machine, error) {
	m, err := machine.Find(spec.Dir)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, cgroup.Remove(spec.Cgroup, patience)
	}
	if m.Runs(spec) {
		return m, nil
	}
	s.Progress.Say("restarting " + spec.Name + " because its spec has changed")
	return nil, s.kill(m, spec.Name)
}

// patience is the maximum time to wait for the kernel to end a machine's processes.
const patience = 30 * time.Second
