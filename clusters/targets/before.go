package targets

import (
	"maps"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/reconcile"
)

// Before returns a function that returns the recorded state of the cluster with the given namespace/name.
func Before(owned inventory.ByCluster) func(cluster string) reconcile.Previous {
	managed := owned.Managed()
	return func(cluster string) reconcile.Previous {
		p := managed[inventory.ParseKey(cluster)]
		if p == nil {
			return reconcile.Previous{}
		}
		return reconcile.Previous{Source: p.Custom.Status.DeclaredSource, Held: orphanOf(p.Custom).held}
	}
}

// Trusted returns a copy of listed in which a cluster has no recorded source if this run knows that source and the
// source may not declare clusters in the namespace. Anyone with write access to a namespace controls its custom
// resources, but must not be able to impersonate other sources.
func Trusted(listed inventory.ByCluster, desired reconcile.Desired) inventory.ByCluster {
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

// believable reports whether a source may have declared clusters in a namespace. It searches this run's sources by name
// and then by location, and returns true if the source is unknown.
func believable(source, namespace string, desired reconcile.Desired) bool {
	if state, known := desired.State(source); known {
		return state.Namespaces.Allow(namespace)
	}
	known := false
	for _, state := range desired.Sources {
		if source != "" && reconcile.SameLocation(state.Name, source) {
			if state.Namespaces.Allow(namespace) {
				return true
			}
			known = true
		}
	}
	return !known
}
