package clusters

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile"
)

// changes collects the clusters for which watches report changes. It implements reconcile.Changes.
type changes struct {
	woken chan struct{}

	mu       sync.Mutex
	clusters map[string]bool
	all      bool
}

// Changes implements reconcile.Live.
func (l *Live) Changes(ctx context.Context) reconcile.Changes {
	c := &changes{woken: make(chan struct{}, 1), clusters: map[string]bool{}}
	var begun sync.WaitGroup
	note := func(object metav1.Object) { c.note(l, object) }
	for _, namespace := range l.namespaces() {
		begun.Go(func() { l.at(namespace).Watch(ctx, namespace, objects.Managed, note) })
	}
	begun.Wait()
	return c
}

// note records a change to an object. A nil object means that any object may have changed.
func (c *changes) note(live *Live, object metav1.Object) {
	c.mu.Lock()
	if object == nil {
		c.all = true
	} else if key, custom := clusterOf(object); live.owns(key) {
		declaration := custom && live.isNews(key, object)
		c.clusters[key.String()] = c.clusters[key.String()] || declaration
	}
	c.mu.Unlock()
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// clusterOf returns the cluster to which an object belongs. An object without a cluster label is the custom resource.
func clusterOf(object metav1.Object) (key inventory.Key, custom bool) {
	name := objects.ClusterOf(object.GetLabels())
	if custom = name == ""; custom {
		name = object.GetName()
	}
	return inventory.Key{Namespace: object.GetNamespace(), Name: name}, custom
}

// isNews reports whether the declaration in a custom resource has changed since it was last listed. UIDs are compared
// too, because a recreated custom resource starts again at generation 1. A custom resource that was not listed is
// recorded as existing until all custom resources are listed again.
func (l *Live) isNews(key inventory.Key, custom metav1.Object) bool {
	listed := l.last.Load()
	if listed == nil {
		return true
	}
	if own := listed.inventory[key]; own != nil && own.Custom != nil {
		return own.Custom.UID != custom.GetUID() || own.Custom.Generation != custom.GetGeneration()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met[key] = true
	return true
}

// Woken implements reconcile.Changes.
func (c *changes) Woken() <-chan struct{} { return c.woken }

// Take implements reconcile.Changes.
func (c *changes) Take() (clusters map[string]bool, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clusters, all = c.clusters, c.all
	c.clusters, c.all = map[string]bool{}, false
	return clusters, all
}
