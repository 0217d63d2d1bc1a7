package clusters

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/reconcile"
)

// GCPercent is the recommended GOGC for passes over large numbers of clusters. Most of the memory holds packed objects,
// which are cheap for the garbage collector to scan.
const GCPercent = 50

// Options configures the live side.
type Options struct {
	// Namespaces are the namespaces to observe; empty means all namespaces.
	Namespaces []string
	// Tenants are the clients for some of these namespaces, by namespace. The client passed to New is for all other
	// namespaces.
	Tenants map[string]*kube.Client
	// PortForward reaches etcd through the API server instead of the pod network.
	PortForward bool
	// LeaseDuration is the time that a lease is valid without renewal, at most MaxLeaseDuration.
	LeaseDuration time.Duration
	// Timeout is the timeout of one request to one etcd member.
	Timeout time.Duration
	// Reading forbids all writes. Secrets that may not be read are skipped and reported.
	Reading bool
	// BackupImage is the image of backup pods, with a tag or a digest, or empty if not configured.
	BackupImage string
	// AllowRecovery allows spec.recovery to create a new cluster from the remains of a cluster that has lost its
	// majority.
	AllowRecovery bool
	// Shard is the subset of clusters to observe and act on. Decisions that concern all clusters, such as which
	// clusters may be deleted, still take all clusters into account.
	Shard shard.Shard
	// MaxDeletions limits how many clusters may start to be deleted with their data, per source or, if the custom
	// resources are the source, per namespace. nil means no limit.
	MaxDeletions *int
	// Round is the interval at which a long-running process resets the count for MaxDeletions, and updates statuses
	// even if only their revision has changed. Zero means that the process is not long-running.
	Round time.Duration
}

// Live is the live side of one API server.
type Live struct {
	kube    *kube.Client
	etcd    etcd.Clients
	options Options
	// deletions counts the clusters that have started to be deleted.
	deletions targets.Deletions
	holder    holder

	// last is the last listing of all clusters, or nil before the first listing.
	last atomic.Pointer[listing]

	mu   sync.Mutex
	held map[inventory.Key]*coordinationv1.Lease
	// compared is when the members of each cluster were last asked for their hashes without a difference being found.
	// It limits how often data is compared if the status cannot be written.
	compared map[inventory.Key]time.Time
	// met contains the clusters that a watch has reported and that have not been listed since.
	met map[inventory.Key]bool
}

// New returns the live side of a client's API server.
func New(client *kube.Client, options Options) *Live {
	l := &Live{kube: client, options: options, holder: newHolder(),
		held: map[inventory.Key]*coordinationv1.Lease{}, met: map[inventory.Key]bool{},
		compared: map[inventory.Key]time.Time{}}
	l.etcd.Timeout, l.deletions.Most, l.deletions.Shard = options.Timeout, options.MaxDeletions, options.Shard
	l.deletions.Round = options.Round
	return l
}

// Observe implements reconcile.Live. It only lists the live state. A cluster is observed, and its etcd members are
// asked, only when the cluster's state is requested.
func (l *Live) Observe(
	ctx context.Context, desired reconcile.Desired, wanted func(cluster string) bool,
) (reconcile.Observed, error) {
	listed, err := l.listWanted(ctx, desired, wanted)
	if err != nil {
		return reconcile.Observed{}, err
	}
	owned := targets.Trusted(listed.inventory, desired)
	desired = withoutRewound(ctx, listed.marked(desired), owned)
	resolved := targets.Resolve(desired, owned, &l.deletions, func(all []targets.Target, desired reconcile.Desired) {
		targets.RefuseBackups(all, l.options.BackupImage, owned, desired)
		targets.RefuseOwnAccounts(all, func(namespace string) string { return l.at(namespace).User() }, owned, desired)
	})
	desired = resolved.Desired
	nodes := l.nodes(ctx)
	var observed []reconcile.Cluster
	for _, t := range resolved.Targets {
		if !l.options.Shard.Owns(t.Key().String()) {
			continue
		}
		c := l.newCluster(t, owned.Of(t.Key()), nodes(t.Cluster.Namespace))
		c.unseen = listed.unseen(t, desired)
		hidden := listed.hiddenIn(t.Cluster.Namespace)
		c.hidden, c.hiddenBackups = hidden.Secrets, hidden.Backups
		observed = append(observed, c)
	}
	return reconcile.Observed{Desired: desired, Clusters: observed, Removals: resolved.Removals,
		Unlisted: listed.failure(desired.Sources), UnlistedIn: slices.Sorted(maps.Keys(listed.unlisted))}, nil
}

// Close releases all leases and closes all connections.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failures []error
	for k, lease := range l.held {
		failures = append(failures, l.at(k.Namespace).ReleaseLease(ctx, lease))
		delete(l.held, k)
	}
	l.etcd.Close()
	return errors.Join(failures...)
}
