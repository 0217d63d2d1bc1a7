package clusters

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// Source is a cluster that a backup is taken of.
type Source struct {
	live *Live
	etcd etcd.Cluster
}

// ErrNoCluster is a cluster that has no custom resource.
var ErrNoCluster = errors.New("there is no such EtcdCluster")

// Source finds a cluster, and how to reach its members. Nothing is written.
func (l *Live) Source(ctx context.Context, namespace, name string) (Source, error) {
	observed, err := l.Observe(ctx, reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked})
	if err != nil {
		return Source{}, err
	}
	for _, found := range observed.Clusters {
		if c, is := found.(*cluster); is && c.target.Key() == (inventory.Key{Namespace: namespace, Name: name}) {
			return c.source(ctx)
		}
	}
	return Source{}, errors.Join(fmt.Errorf("%s/%s: %w", namespace, name, ErrNoCluster), observed.Unlisted)
}

func (c *cluster) source(ctx context.Context) (Source, error) {
	if _, err := c.State(ctx); err != nil {
		return Source{}, err
	}
	pods, tls := c.reachable(), c.clientTLS()
	switch {
	case len(pods) == 0:
		return Source{}, fmt.Errorf("%s: no member's pod runs", c.target.Key())
	case tls == nil && c.target.Cluster.Spec.TLS.Mode == v1alpha1.TLSManaged:
		return Source{}, fmt.Errorf("%s: %s", c.target.Key(), c.whyNoClient())
	}
	return Source{c.live, c.etcd(pods, tls)}, nil
}

// Snapshot asks the member that is best asked for its database.
func (s Source) Snapshot(ctx context.Context) (*etcd.Snapshot, error) {
	return s.live.etcd.Snapshot(ctx, s.etcd)
}

// Prove asks members whether they hold the same data as a snapshot.
func (s Source) Prove(ctx context.Context, wanted decide.Hash) etcd.Proof {
	return s.live.etcd.Prove(ctx, s.etcd, wanted)
}
