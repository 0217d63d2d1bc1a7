// Package fleet stands in for the nodes and for the etcd of very many clusters, so that what a pass costs
// over thousands of members can be measured on one machine. API server, controllers and scheduler are real;
// the pods of one node that is not there are said to run, and one process answers as all members of etcd.
//
// What members are is kept in memory: when the process ends, all of them have lost their data.
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

// Fleet is the node and all that runs on it.
type Fleet struct {
	// Kubeconfig of an administrator.
	Kubeconfig string
	// Node is its name, and Address that of the node and of all its pods, on this machine.
	Node, Address string
	// Volumes is a directory for those of the pods.
	Volumes string
}

// clientPort is etcd's.
const clientPort = "2379"

// Run stands in until ctx ends. It closes the other nodes to new pods.
func (f Fleet) Run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", f.Kubeconfig, err)
	}
	config.QPS = -1 // the API server says when it is too much
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
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
