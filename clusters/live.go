package clusters

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/reconcile"
)

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
	// AllowRecovery: a new cluster may be made of what is left of one that has lost its majority, where git
	// orders it.
	AllowRecovery bool
	// MaxDeletions is how many clusters of each source may newly be deleted with their data; nil
	// stands for any number.
	MaxDeletions *int
}

// Live is the live side of one API server.
type Live struct {
	kube    *kube.Client
	etcd    etcd.Clients
	options Options
	// deletions counts the clusters whose deletion begins.
	deletions targets.Deletions
	holder    holder

	mu   sync.Mutex
	held map[inventory.Key]*coordinationv1.Lease
}

// New returns the live side behind a client.
func New(client *kube.Client, options Options) *Live {
	l := &Live{kube: client, options: options, holder: thisHolder(), held: map[inventory.Key]*coordinationv1.Lease{}}
	l.etcd.Timeout, l.deletions.Most = options.Timeout, options.MaxDeletions
	return l
}

// Observe implements reconcile.Live. It lists what there is; each cluster is looked at, and etcd
// asked, when its state is asked for.
func (l *Live) Observe(ctx context.Context, desired reconcile.Desired) (reconcile.Observed, error) {
	listed, err := l.list(ctx, desired.Sources)
	if err != nil {
		return reconcile.Observed{}, err
	}
	owned := listed.inventory
	targets.Disbelieve(owned, desired)
	desired = withoutRewound(ctx, listed.marked(desired), owned)
	desired = desired.Settled(targets.Before(owned))
	chosen, removals := targets.Of(desired, owned)
	targets.RefuseBackups(chosen, l.options.BackupImage, owned, desired)
	desired.Warnings = append(slices.Clip(desired.Warnings), targets.ConfirmedInVain(desired.Confirmed, removals)...)
	chosen = l.deletions.Limit(chosen, owned, desired.Live)
	nodes := l.nodes(ctx)
	observed := make([]reconcile.Cluster, len(chosen))
	for i, t := range chosen {
		c := l.newCluster(t, owned.Of(t.Key()), nodes(t.Cluster.Namespace))
		c.unseen = listed.unseen(t, desired)
		hidden := listed.hiddenIn(t.Cluster.Namespace)
		c.hidden, c.hiddenBackups = hidden.secrets, hidden.backups
		observed[i] = c
	}
	return reconcile.Observed{Desired: desired, Clusters: observed, Removals: removals,
		Unlisted: listed.failure(desired.Sources)}, nil
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
