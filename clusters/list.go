package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile"
)

// namespacesAtOnce is the maximum number of namespaces listed at the same time, each with one request per kind.
const namespacesAtOnce = 4

// at returns the client for a namespace.
func (l *Live) at(namespace string) *kube.Client {
	if client := l.options.Tenants[namespace]; client != nil {
		return client
	}
	return l.kube
}

// kube returns the client for the cluster's namespace.
func (c *cluster) kube() *kube.Client { return c.live.at(c.target.Cluster.Namespace) }

// namespaces returns the namespaces to list individually; "" means all namespaces.
func (l *Live) namespaces() []string {
	if len(l.options.Namespaces) == 0 {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(l.options.Namespaces)))
}

// listing is the live state of the observed namespaces, with the errors for namespaces that could not be listed.
type listing struct {
	inventory inventory.ByCluster
	unlisted  map[string]error
	// unknown contains the errors for individually listed clusters that could not be listed.
	unknown map[inventory.Key]error
	// hidden contains the kinds that could not be listed although other kinds could, by namespace, or under "" for all
	// namespaces.
	hidden map[string]kube.Hidden
}

// alike reports whether a and b hide the same kinds.
func alike(a, b kube.Hidden) bool {
	return (a.Secrets != nil) == (b.Secrets != nil) && (a.Policies != nil) == (b.Policies != nil) &&
		(a.Backups != nil) == (b.Backups != nil)
}

func (l listing) hiddenIn(namespace string) kube.Hidden {
	if h, listed := l.hidden[namespace]; listed {
		return h
	}
	return l.hidden[""]
}

// list lists the live state and keeps the objects of the wanted clusters, or of all clusters if wanted is nil. If a
// namespace cannot be listed, for example because a right was revoked, only its clusters are affected. If all
// namespaces fail, nothing is known, and list returns an error.
func (l *Live) list(
	ctx context.Context, sources []reconcile.SourceState, wanted func(cluster string) bool,
) (listing, error) {
	opens := func(key inventory.Key) bool { return l.owns(key) && (wanted == nil || wanted(key.String())) }
	namespaces := l.namespaces()
	found, errs := make([]inventory.ByCluster, len(namespaces)), make([]error, len(namespaces))
	hides := make([]kube.Hidden, len(namespaces))
	var group errgroup.Group
	group.SetLimit(namespacesAtOnce)
	for i, namespace := range namespaces {
		group.Go(func() error {
			errs[i] = l.advised(namespace, panics.Catch(func() error {
				sorter := inventory.NewSorter(opens)
				h, err := l.at(namespace).List(ctx, namespace, objects.Managed, sorter)
				found[i], hides[i] = sorter.Listed(), h
				return l.sees(h, err)
			}))
			return nil
		})
	}
	_ = group.Wait() // errors are stored per namespace
	all := listing{inventory: inventory.ByCluster{}, unlisted: map[string]error{},
		hidden: map[string]kube.Hidden{}}
	for i, namespace := range namespaces {
		if errs[i] != nil {
			all.unlisted[namespace] = errs[i]
			continue
		}
		maps.Copy(all.inventory, found[i])
		all.hidden[namespace] = hides[i]
	}
	if len(all.unlisted) < len(namespaces) {
		return all, nil
	}
	return listing{}, l.cannotObserve(namespaces, sources, errs)
}

// sees returns the reason why the listed state is unknown, or nil. Only a read-only run proceeds without the Secrets.
func (l *Live) sees(h kube.Hidden, err error) error {
	if err == nil && !l.options.Reading {
		err = h.Secrets
	}
	return err
}

// owns reports whether this process observes a cluster.
func (l *Live) owns(key inventory.Key) bool { return l.options.Shard.Owns(key.String()) }

// cannotObserve returns the error for a listing in which all namespaces failed: a setup error if all causes are setup
// errors.
func (l *Live) cannotObserve(namespaces []string, sources []reconcile.SourceState, errs []error) error {
	for i, namespace := range namespaces {
		if namespace != "" {
			errs[i] = lookedAt(namespace, sources, errs[i])
		}
	}
	return inKind(fmt.Errorf("observe %s: %w", l.kube.Host(), errors.Join(distinct(errs)...)), errs)
}

// inKind returns err as a setup error if all its causes are setup errors, and otherwise unchanged.
func inKind(err error, causes []error) error {
	if slices.ContainsFunc(causes, func(cause error) bool { return !kube.NeedsSetup(cause) }) {
		return err
	}
	return reconcile.SetupError{Err: err}
}

// distinct returns errs without duplicates.
func distinct(errs []error) []error {
	var list []error
	for _, err := range errs {
		if !slices.ContainsFunc(list, func(other error) bool { return other.Error() == err.Error() }) {
			list = append(list, err)
		}
	}
	return list
}

// failure returns an error with the namespaces that could not be listed, their sources and the causes, or nil.
func (l listing) failure(sources []reconcile.SourceState) error {
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(l.unlisted)) {
		errs = append(errs, lookedAt(namespace, sources, l.unlisted[namespace]))
	}
	if len(errs) == 0 {
		return nil
	}
	return inKind(errors.Join(errs...), errs)
}

// marked returns desired with a mark on each source whose clusters may not all have been listed. Clusters that a marked
// source no longer declares are left unchanged.
func (l listing) marked(desired reconcile.Desired) reconcile.Desired {
	desired.Sources = slices.Clone(desired.Sources)
	for i := range desired.Sources {
		p := &desired.Sources[i]
		for namespace := range l.unlisted {
			p.Unlisted = p.Unlisted || p.Namespaces.Allow(namespace)
		}
	}
	return desired
}

// unseen returns the reason why the live state of a cluster is unknown, or nil. A cluster without objects may be a
// renamed cluster of the same source, so its state is known only if all of the source's namespaces were listed.
func (l listing) unseen(t targets.Target, desired reconcile.Desired) error {
	namespace := t.Cluster.Namespace
	if err := l.unknown[t.Key()]; err != nil {
		return fmt.Errorf("list its objects: %w", brief(err))
	}
	if err := l.unlisted[namespace]; err != nil {
		return fmt.Errorf("list namespace %s: %w", namespace, brief(err))
	}
	if err := l.hiddenIn(namespace).Policies; err != nil && t.Cluster.Spec.NetworkPolicy != nil {
		return fmt.Errorf("read its NetworkPolicy: %w", err)
	}
	kin := func(p reconcile.SourceState) bool { return p.Unlisted && reconcile.SameLocation(p.Name, t.Source) }
	if t.Empty && slices.ContainsFunc(desired.Sources, kin) {
		return errors.New("another namespace of its source could not be listed. This may be a cluster from " +
			"that namespace under a new name, so it is not bootstrapped")
	}
	return nil
}

// nodes returns a function that lists the nodes with a namespace's client, once per pass.
func (l *Live) nodes(ctx context.Context) func(namespace string) func() ([]corev1.Node, error) {
	lists := map[*kube.Client]func() ([]corev1.Node, error){}
	return func(namespace string) func() ([]corev1.Node, error) {
		client := l.at(namespace)
		if lists[client] == nil {
			lists[client] = sync.OnceValues(func() ([]corev1.Node, error) { return client.Nodes(ctx) })
		}
		return lists[client]
	}
}
