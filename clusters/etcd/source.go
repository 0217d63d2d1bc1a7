package etcd

import (
	"context"

	"quorate.dev/quorate/reconcile/decide"
)

// Source is a cluster that a backup is taken of.
type Source struct {
	clients *Clients
	cluster Cluster
}

// Source returns the cluster, to be asked over these connections.
func (c *Clients) Source(cluster Cluster) Source { return Source{c, cluster} }

// ClusterID asks which cluster it is.
func (s Source) ClusterID(ctx context.Context) (decide.ID, error) {
	return s.clients.ClusterID(ctx, s.cluster)
}

// Snapshot asks the member that is best asked for its database.
func (s Source) Snapshot(ctx context.Context) (*Snapshot, error) {
	return s.clients.Snapshot(ctx, s.cluster)
}

// Prove asks members whether they hold the same data as a snapshot.
func (s Source) Prove(ctx context.Context, wanted decide.Hash) Proof {
	return s.clients.Prove(ctx, s.cluster, wanted)
}
