//go:build linux

package sandbox

import (
	"context"
	"fmt"

	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/layout"
)

// StopNode ends the node's machine as a power failure would: the kubelet, containerd and all pods stop immediately. The
// node's disk is kept.
func (s *Sandbox) StopNode(ctx context.Context, name string) error {
	unlock, err := s.lockExisting(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.node(name); err != nil {
		return err
	}
	m, err := s.machine(name)
	if err != nil || m == nil {
		return err
	}
	return s.kill(m, name)
}

// StartNode boots a stopped node and returns when it is ready and its pods can reach Services.
func (s *Sandbox) StartNode(ctx context.Context, name string) error {
	programs, err := Build(ctx, s.Progress)
	if err != nil {
		return err
	}
	unlock, err := s.lockExisting(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	n, err := s.node(name)
	if err != nil {
		return err
	}
	control, err := s.controlPlane()
	if err != nil {
		return err
	}
	if _, err := s.startNode(programs, n, control, false); err != nil {
		return err
	}
	c, err := cluster.New(s.Kubeconfig())
	if err != nil {
		return err
	}
	return s.settle(ctx, c, []layout.Node{n})
}

func (s *Sandbox) node(name string) (layout.Node, error) {
	r, err := s.recorded()
	if err != nil {
		return 0, err
	}
	for _, n := range r.nodes() {
		if n.Name() == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("sandbox %s does not have a node %q: its nodes are node-1 to node-%d", s.Name, name, r.Nodes)
}
