package targets

import (
	"maps"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/reconcile"
)

// Before tells what is on record of a cluster, given as namespace/name.
func Before(owned inventory.ByCluster) func(cluster string) reconcile.Before {
	managed := owned.Managed()
	return func(cluster string) reconcile.Before {
		p := managed[inventory.ParseKey(cluster)]
		if p == nil {
			return reconcile.Before{}
		}
		return reconcile.Before{Source: p.Custom.Status.DeclaredSource, Held: orphanOf(p.Custom).held}
	}
}

// Believed is what is there without who is said to have declared a cluster, where that is a source of this run that
// may declare none there: whoever may write to a namespace writes what its custom resources say, and is not to
// speak for the sources of others. What was listed stays as it is.
func Believed(listed inventory.ByCluster, desired reconcile.Desired) inventory.ByCluster {
	believed := maps.Clone(listed)
	for k, own := range listed {
		if own.Custom != nil && !believable(own.Custom.Status.DeclaredSource, k.Namespace, desired) {
			other, custom := *own, *own.Custom
			status := &custom.Status
			status.DeclaredSource, status.DeclaredRevision, status.SourceRevision = "", "", ""
			status.DeclaredRevisionTime = nil
			other.Custom, believed[k] = &custom, &other
		}
	}
	return believed
}

// believable reports whether a source may have declared what is in a namespace, as far as this run
// knows it: by its name, or else by its location.
func believable(source, namespace string, desired reconcile.Desired) bool {
	if place, known := desired.Place(source); known {
		return place.Namespaces.Allow(namespace)
	}
	known := false
	for _, place := range desired.Sources {
		if source != "" && reconcile.SameLocation(place.Name, source) {
			if place.Namespaces.Allow(namespace) {
				return true
			}
			known = true
		}
	}
	return !known
}
