package etcd

import (
	"context"

	"quorate.dev/quorate/reconcile/decide"
)

// Source is a cluster to back up.
type Source struct {
	clients *Clients
	cluster Cluster
}

// Source returns the cluster as a Source that uses these connections.
func (c *Clients) Source(cluster Cluster) Source { return Source{c, cluster} }

// ClusterID returns the cluster ID reported by a quorum.
func (s Source) ClusterID(ctx context.Context) (decide.ID, error) {
	return s.clients.ClusterID(ctx, s.cluster)
}

// Snapshot requests the database of the best source member. See Clients.Snapshot.
func (s Source) Snapshot(ctx context.Context, except ...string) (*Snapshot, error) {
	return s.clients.Snapshot(ctx, s.cluster, except...)
}

// CurrentRevision returns the cluster ID and the current revision. See Clients.CurrentRevision.
func (s Source) CurrentRevision(ctx context.Context) (decide.ID, int64, error) {
	return s.clients.CurrentRevision(ctx, s.cluster)
}

// Prove asks the members whether they hold the same data as a snapshot. See Clients.Prove.
func (s Source) Prove(ctx context.Context, wanted decide.Hash) Proof {
	return s.clients.Prove(ctx, s.cluster, wanted)
}
