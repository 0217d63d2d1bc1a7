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

// GCPercent is what GOGC should be for passes over very many clusters. Most of what they hold is packed, so that
// looking through it costs the garbage collector little.
const GCPercent = 50

// Options of the live side.
type Options struct {
	// Namespaces that are looked at; all if there are none.
	Namespaces []string
	// Tenants are the clients by which everything in some of these namespaces is read and written;
	// that of New is for the others.
	Tenants map[string]*kube.Client
	// PortForward: etcd is reached through the API server, not by the pod network.
	PortForward bool
	// LeaseDuration after which a lease that nobody renews is free.
	LeaseDuration time.Duration
	// Timeout of one question to one member of etcd.
	Timeout time.Duration
	// Reading: nothing is written, and what may not be read of Secrets is left out, and said.
	Reading bool
	// BackupImage is the image of the pods that back up, a reference with a tag or a digest; empty if
	// nobody has said which.
	BackupImage string
	// Part is the name of the part of this process that this is, where it has several. Each has leases of its own:
	// should two of them be about one Kubernetes cluster all the same, each leaves alone what the other one acts on.
	Part string
	// AllowRecovery: a new cluster may be made of what is left of one that has lost its majority, where git
	// orders it.
	AllowRecovery bool
	// Shard is the part of the clusters that is looked at and acted on. What counts over all clusters, as what may be
	// deleted, is judged over all of them.
	Shard shard.Shard
	// MaxDeletions limits how many clusters of each source may newly be deleted with their data, or of each namespace if
	// the custom resources are the source; nil means no limit.
	MaxDeletions *int
	// Round is for a process that goes on forever: MaxDeletions counts again after that time, and that is how
	// long a status may name an older revision if nothing else in it is news. Zero stands for no such process.
	Round time.Duration
}

// Live is the live side of one API server.
type Live struct {
	kube    *kube.Client
	etcd    etcd.Clients
	options Options
	// deletions counts the clusters whose deletion begins.
	deletions targets.Deletions
	holder    holder

	// last is what was listed last of every cluster; nil before that.
	last atomic.Pointer[listing]

	mu   sync.Mutex
	held map[inventory.Key]*coordinationv1.Lease
	// met are the clusters of which a watch has told since, and a list has not.
	met map[inventory.Key]bool
}

// New returns the live side behind a client.
func New(client *kube.Client, options Options) *Live {
	l := &Live{kube: client, options: options, holder: thisHolder(options.Part),
		held: map[inventory.Key]*coordinationv1.Lease{}, met: map[inventory.Key]bool{}}
	l.etcd.Timeout, l.deletions.Most, l.deletions.Shard = options.Timeout, options.MaxDeletions, options.Shard
	l.deletions.Round = options.Round
	return l
}

// Observe implements reconcile.Live. It lists what there is; each cluster is looked at, and etcd
// asked, when its state is asked for.
func (l *Live) Observe(
	ctx context.Context, desired reconcile.Desired, wanted func(cluster string) bool,
) (reconcile.Observed, error) {
	listed, err := l.listWanted(ctx, desired, wanted)
	if err != nil {
		return reconcile.Observed{}, err
	}
	owned := targets.Believed(listed.inventory, desired)
	desired = withoutRewound(ctx, listed.marked(desired), owned)
	desired = desired.Settled(targets.Before(owned))
	chosen, removals := targets.Of(desired, owned)
	targets.RefuseBackups(chosen, l.options.BackupImage, owned, desired)
	targets.RefuseOwnAccounts(chosen, func(namespace string) string { return l.at(namespace).User() }, owned, desired)
	desired.Warnings = append(slices.Clip(desired.Warnings), targets.ConfirmedInVain(desired.Confirmed, removals)...)
	chosen = l.deletions.Limit(chosen, owned, desired.Live)
	nodes := l.nodes(ctx)
	var observed []reconcile.Cluster
	for _, t := range chosen {
		if !l.options.Shard.Owns(t.Key().String()) {
			continue
		}
		c := l.newCluster(t, owned.Of(t.Key()), nodes(t.Cluster.Namespace))
		c.unseen = listed.unseen(t, desired)
		hidden := listed.hiddenIn(t.Cluster.Namespace)
		c.hidden, c.hiddenBackups = hidden.Secrets, hidden.Backups
		observed = append(observed, c)
	}
	return reconcile.Observed{Desired: desired, Clusters: observed, Removals: removals,
		Unlisted: listed.failure(desired.Sources), UnlistedIn: slices.Sorted(maps.Keys(listed.unlisted))}, nil
}

// Close gives up all leases and connections.
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
