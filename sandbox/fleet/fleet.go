// Package fleet fakes the node and the etcd members of thousands of clusters, so that the cost of a pass over these
// clusters can be measured on one machine. The API server, controllers and scheduler are real. A single fake node
// reports its pods as running, and a single process responds for all etcd members.
//
// The members' state is kept in memory: when the process ends, all members lose their data.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"quorate.dev/quorate/sandbox/provisioner"
)

// Fleet is the fake node and everything that runs on it.
type Fleet struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string
	// Node is the name of the node. Address is an address of this machine that the node and all its pods share.
	Node, Address string
	// Volumes is a directory for the pods' volumes.
	Volumes string
}

// clientPort is etcd's client port.
const clientPort = "2379"

// Run runs the fleet until ctx is done. It marks all other nodes as unschedulable.
func (f Fleet) Run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", f.Kubeconfig, err)
	}
	config.QPS = -1 // the API server limits the rate anyway
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create an API server client: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(f.Address, clientPort))
	if err != nil {
		return fmt.Errorf("listen as etcd: %w", err)
	}
	etcd := newEtcd()
	server := etcd.server()
	n := node{api: api, name: f.Node, address: f.Address}
	if err := errors.Join(n.closeOthers(ctx), n.register(ctx)); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error { <-ctx.Done(); server.Stop(); return nil })
	group.Go(func() error { return n.stayAlive(ctx) })
	group.Go(func() error { return provisioner.Run(ctx, f.Kubeconfig, f.Node, f.Volumes) })
	group.Go(func() error { return (&kubelet{node: n, etcd: etcd}).run(ctx) })
	return group.Wait()
}
