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
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/panics"
)

// namespacesAtOnce bounds how many namespaces are listed at once, each with a request per kind.
const namespacesAtOnce = 4

// at is the client for what is in a namespace.
func (l *Live) at(namespace string) *kube.Client {
	if client := l.options.Tenants[namespace]; client != nil {
		return client
	}
	return l.kube
}

// kube is the client for what is the cluster's.
func (c *cluster) kube() *kube.Client { return c.live.at(c.target.Cluster.Namespace) }

// namespaces are those that are listed, each by itself; one without a name stands for all of them.
func (l *Live) namespaces() []string {
	if len(l.options.Namespaces) == 0 {
		return []string{""}
	}
	return slices.Compact(slices.Sorted(slices.Values(l.options.Namespaces)))
}

// listing is what there is in the namespaces that are looked at, and why some of them could not be
// listed.
type listing struct {
	inventory inventory.ByCluster
	unlisted  map[string]error
	// unknown says of clusters that were to be listed by themselves why they could not be.
	unknown map[inventory.Key]error
	// hidden is what could not be listed of namespaces, or of all under an empty name, where all
	// else could.
	hidden map[string]kube.Hidden
}

// alike reports whether the same is hidden.
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

// list lists what there is, and keeps the objects of those clusters that are wanted; nil wants all. A namespace that
// cannot be listed, as where somebody has taken the right to it, is a matter of the clusters in it. If none can,
// nothing is known at all, which is the error.
func (l *Live) list(
	ctx context.Context, sources []reconcile.Place, wanted func(cluster string) bool,
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
	_ = group.Wait() // each has an error of its own
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

// sees is why it is not known what was listed; nil if it is. Only who reads goes on without the Secrets.
func (l *Live) sees(h kube.Hidden, err error) error {
	if err == nil && !l.options.Reading {
		err = h.Secrets
	}
	return err
}

// owns reports whether a cluster is one that this process looks at.
func (l *Live) owns(key inventory.Key) bool { return l.options.Shard.Owns(key.String()) }

// cannotObserve says that none of the namespaces could be listed. It is a matter of setup if that
// of each is.
func (l *Live) cannotObserve(namespaces []string, sources []reconcile.Place, errs []error) error {
	for i, namespace := range namespaces {
		if namespace != "" {
			errs[i] = lookedAt(namespace, sources, errs[i])
		}
	}
	return inKind(fmt.Errorf("observe %s: %w", l.kube.Host(), errors.Join(distinct(errs)...)), errs)
}

// inKind is an error of setup if each of its causes is one, and the error as it is otherwise.
func inKind(err error, causes []error) error {
	if slices.ContainsFunc(causes, func(cause error) bool { return !kube.NeedsSetup(cause) }) {
		return err
	}
	return reconcile.SetupError{Err: err}
}

// distinct are errors, each once.
func distinct(errs []error) []error {
	var list []error
	for _, err := range errs {
		if !slices.ContainsFunc(list, func(other error) bool { return other.Error() == err.Error() }) {
			list = append(list, err)
		}
	}
	return list
}

// failure says which namespaces could not be listed, for which sources, and why; nil if all could.
func (l listing) failure(sources []reconcile.Place) error {
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(l.unlisted)) {
		errs = append(errs, lookedAt(namespace, sources, l.unlisted[namespace]))
	}
	if len(errs) == 0 {
		return nil
	}
	return inKind(errors.Join(errs...), errs)
}

// marked is what is declared, with a mark on each place whose clusters are not all known: what it
// does not declare any more then stays as it is.
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

// unseen says why it is not known what is there of a cluster; nil if it is. One of which nothing is
// seen may be another of the same source under a new name, unless all of them are.
func (l listing) unseen(t targets.Target, desired reconcile.Desired) error {
	namespace := t.Cluster.Namespace
	if err := l.unknown[t.Key()]; err != nil {
		return fmt.Errorf("look at its objects: %w", brief(err))
	}
	if err := l.unlisted[namespace]; err != nil {
		return fmt.Errorf("look at the namespace %s: %w", namespace, brief(err))
	}
	if err := l.hiddenIn(namespace).Policies; err != nil && t.Cluster.Spec.NetworkPolicy != nil {
		return fmt.Errorf("look at its NetworkPolicy: %w", err)
	}
	kin := func(p reconcile.Place) bool { return p.Unlisted && reconcile.SameLocation(p.Name, t.Source) }
	if t.Empty && slices.ContainsFunc(desired.Sources, kin) {
		return errors.New("another namespace of its source could not be looked at, so whether it is a cluster from " +
			"there under a new name is not known: nothing is founded")
	}
	return nil
}

// nodes returns a function that lists the nodes as who looks at a namespace may, once in a pass.
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
