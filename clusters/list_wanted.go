package clusters

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile"
)

const (
	// clustersAtOnce is the maximum number of clusters listed individually at the same time, each with one request per
	// kind.
	clustersAtOnce = 4
	// listedAlone is the maximum number of clusters that are listed individually. In a large fleet, the maximum is the
	// number of all clusters divided by listedAlone, if that is more. Above the maximum, listing all clusters together
	// takes fewer requests and less time.
	listedAlone = 8
)

// listWanted lists the live state of the wanted clusters and reuses the last listing of the other clusters. It never
// uses data from a watch, which may be outdated.
func (l *Live) listWanted(
	ctx context.Context, desired reconcile.Desired, wanted func(cluster string) bool,
) (listing, error) {
	if wanted == nil || l.last.Load() == nil {
		return l.listAll(ctx, desired, wanted)
	}
	keys, all := l.wantedOf(desired, wanted)
	if len(keys)*listedAlone > max(all, listedAlone*listedAlone) || slices.ContainsFunc(keys, isNoLabel) {
		return l.listAll(ctx, desired, wanted)
	}
	next, current := l.last.Load().clone(), true
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(clustersAtOnce)
	for _, key := range keys {
		group.Go(func() error {
			own, h, err := l.listCluster(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			next.put(key, own, err)
			current = current && (err != nil || alike(h, next.hiddenIn(key.Namespace)))
			return nil
		})
	}
	_ = group.Wait() // errors are stored per cluster
	if !current {    // rights have been granted or revoked
		return l.listAll(ctx, desired, wanted)
	}
	l.last.Store(&next)
	return next, nil
}

func (l *Live) listAll(
	ctx context.Context, desired reconcile.Desired, wanted func(cluster string) bool,
) (listing, error) {
	l.mu.Lock()
	clear(l.met) // watches fill it again from here on
	l.mu.Unlock()
	listed, err := l.list(ctx, desired.Sources, wanted)
	if err != nil {
		return listing{}, err
	}
	l.last.Store(&listed)
	return listed, nil
}

// wantedOf returns the wanted clusters among the declared and known live clusters, except clusters in namespaces that
// could not be listed. It also returns the number of all declared and known clusters.
func (l *Live) wantedOf(desired reconcile.Desired, wanted func(cluster string) bool) (keys []inventory.Key, all int) {
	last := l.last.Load()
	l.mu.Lock()
	known := maps.Clone(l.met)
	l.mu.Unlock()
	for key := range last.inventory {
		known[key] = true
	}
	for i := range desired.Clusters {
		known[inventory.KeyOf(&desired.Clusters[i].Cluster)] = true
	}
	for key := range known {
		if wanted(key.String()) && last.unlisted[key.Namespace] == nil {
			keys = append(keys, key)
		}
	}
	return keys, len(known)
}

// listCluster lists one cluster. It returns the listed objects, or nil if the cluster has no objects, and the hidden
// kinds.
func (l *Live) listCluster(ctx context.Context, key inventory.Key) (own *inventory.Listed, h kube.Hidden, err error) {
	err = l.advised(key.Namespace, panics.Catch(func() (err error) {
		sorter := inventory.NewSorter(l.owns)
		h, err = l.at(key.Namespace).ListCluster(ctx, key.Namespace, key.Name, objects.SelectorOf(key.Name), sorter)
		own = sorter.Listed()[key]
		return l.sees(h, err)
	}))
	return own, h, err
}

// isNoLabel reports whether a cluster's name is not a valid label value. Quorate never creates a custom resource with
// such a name.
func isNoLabel(key inventory.Key) bool { return len(validation.IsValidLabelValue(key.Name)) > 0 }

// clone returns a copy of the listing that can be changed.
func (l listing) clone() listing {
	l.inventory, l.unknown = maps.Clone(l.inventory), maps.Clone(l.unknown)
	if l.unknown == nil {
		l.unknown = map[inventory.Key]error{}
	}
	return l
}

// put stores the result of listing one cluster: its objects, or the error. If the cluster has no objects, put removes
// it.
func (l listing) put(key inventory.Key, own *inventory.Listed, err error) {
	delete(l.unknown, key)
	switch {
	case err != nil:
		l.unknown[key] = err
	case own == nil:
		delete(l.inventory, key)
	default:
		l.inventory[key] = own
	}
}
