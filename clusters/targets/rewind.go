package targets

import (
	"cmp"
	"maps"
	"slices"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile"
)

// AppliedBefore lists, in order, the last applied revisions of a source, except its current revision. Usually, the
// status of all of its clusters, declared or not, contains the same revision.
func AppliedBefore(owned inventory.ByCluster, desired reconcile.Desired, state reconcile.SourceState) []string {
	revisions := map[string]bool{}
	for k, p := range owned.Managed() {
		text := cmp.Or(p.Custom.Status.SourceRevision, p.Custom.Status.DeclaredRevision)
		// Ignore directories, which have no commit, and the revisions of several sources, which earlier versions
		// recorded together. The text may also be arbitrary, because anyone who can write a status can write any text.
		r, ok := revision.Parse(text)
		another := ok && r.Hash() != "" && text != state.Revision
		if another && state.Namespaces.Allow(k.Namespace) && isOf(p.Custom, k, desired, state) {
			revisions[text] = true
		}
	}
	return slices.Sorted(maps.Keys(revisions))
}

// isOf reports whether a source has declared a cluster before: the cluster's status names the source, or the source
// declares the cluster now and no other source of this run did before. In the latter case, the recorded source is
// assumed to be the same source under a different name.
func isOf(custom *v1alpha1.EtcdCluster, k inventory.Key, desired reconcile.Desired, state reconcile.SourceState) bool {
	source := custom.Status.DeclaredSource
	if source == state.Name {
		return true
	}
	if _, another := desired.State(source); another {
		return false
	}
	return slices.ContainsFunc(desired.Clusters, func(d reconcile.Declaration) bool {
		return d.Source == state.Name && d.Cluster.Namespace == k.Namespace && d.Cluster.Name == k.Name
	})
}
