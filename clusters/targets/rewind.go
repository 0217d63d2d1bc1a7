package targets

import (
	"cmp"
	"maps"
	"regexp"
	"slices"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// AppliedBefore lists the revisions of a place that were applied last, in order: usually one, which
// all of its clusters have in their status, whether it declares them still or not. That of the
// place itself is not among them.
func AppliedBefore(owned inventory.ByCluster, desired reconcile.Desired, place reconcile.Place) []string {
	revisions := map[string]bool{}
	for k, p := range owned.Managed() {
		revision := cmp.Or(p.Custom.Status.SourceRevision, p.Custom.Status.DeclaredRevision)
		// Earlier versions have written down the revisions of several sources at once. Whose is
		// which cannot be known.
		another := commitAt.MatchString(revision) && revision != place.Revision
		if another && place.Namespaces.Allow(k.Namespace) && isOf(p.Custom, k, desired, place) {
			revisions[revision] = true
		}
	}
	return slices.Sorted(maps.Keys(revisions))
}

// commitAt is a revision that names one commit: a directory has none, and anybody who may write a
// status may write anything.
var commitAt = regexp.MustCompile(`^\S*sha1:[0-9a-f]+$`)

// isOf reports whether a cluster was declared by a place before: it says so, or it is declared
// there now and was by none that this run reads, which is then taken for the same one under another
// name.
func isOf(custom *v1alpha1.EtcdCluster, k inventory.Key, desired reconcile.Desired, place reconcile.Place) bool {
	source := custom.Status.DeclaredSource
	if source == place.Name {
		return true
	}
	if _, another := desired.Place(source); another {
		return false
	}
	return slices.ContainsFunc(desired.Clusters, func(d reconcile.Declaration) bool {
		return d.Source == place.Name && d.Cluster.Namespace == k.Namespace && d.Cluster.Name == k.Name
	})
}
