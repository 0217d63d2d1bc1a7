package clusters

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// managed selects everything that Quorate makes.
const managed = "app.kubernetes.io/managed-by=quorate"

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
	// MaxDeletions is how many clusters of each source may newly be deleted with their data; nil
	// stands for any number.
	MaxDeletions *int
}

// Live is the live side of one API server.
type Live struct {
	kube    *kube.Client
	etcd    etcd.Clients
	options Options
	holder  holder

	mu   sync.Mutex
	held map[key]*coordinationv1.Lease
	// deletes are the clusters whose deletion may begin.
	deletes map[key]*granted
}

// key names a cluster.
type key struct{ namespace, name string }

func (k key) String() string { return k.namespace + "/" + k.name }

// keyNamed is the key of namespace/name.
func keyNamed(cluster string) key {
	namespace, name, _ := strings.Cut(cluster, "/")
	return key{namespace, name}
}

func keyOf(custom *v1alpha1.EtcdCluster) key { return key{custom.Namespace, custom.Name} }

// New returns the live side behind a client.
func New(client *kube.Client, options Options) *Live {
	l := &Live{kube: client, options: options, holder: thisHolder(), held: map[key]*coordinationv1.Lease{}, deletes: map[key]*granted{}}
	l.etcd.Timeout = options.Timeout
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
	owned.disbelieve(desired)
	desired = withoutRewound(ctx, listed.marked(desired), owned)
	desired = desired.Settled(owned.managed().before)
	targets, removals := targetsOf(desired, owned)
	desired.Warnings = append(slices.Clip(desired.Warnings), confirmedInVain(desired.Confirmed, removals)...)
	targets = l.countDeletions(targets, owned, desired.Live)
	nodes := l.nodes(ctx)
	observed := make([]reconcile.Cluster, len(targets))
	for i, t := range targets {
		t.unseen = listed.unseen(t, desired)
		c := l.newCluster(t, owned.of(t.key()), nodes(t.cluster.Namespace))
		c.hidden = listed.hiddenIn(t.cluster.Namespace).secrets
		observed[i] = c
	}
	return reconcile.Observed{Desired: desired, Clusters: observed, Removals: removals, Unlisted: listed.failure(desired.Sources)}, nil
}

// Close gives up all leases and connections.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failures []error
	for k, lease := range l.held {
		failures = append(failures, l.at(k.namespace).ReleaseLease(ctx, lease))
		delete(l.held, k)
	}
	l.etcd.Close()
	return errors.Join(failures...)
}
