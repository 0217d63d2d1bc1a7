package targets

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestResolve checks that a declaration of a cluster that belongs to a different source is ignored, that the run's own
// checks apply, that unused confirmations are reported after earlier warnings, and that deletions are limited.
func TestResolve(t *testing.T) {
	const mine, other = "https://host/fleet.git", "https://host/shop.git"
	owned := inventory.ByCluster{}
	declaredBy(owned, mine, "ns/a", "ns/b", "ns/c", "ns/d", "ns/e")
	deleted, kept, foreign := declare("ns/a", "3.5.30"), declare("ns/b", "3.5.30"), declare("ns/b", "3.5.30")
	deleted.Source, kept.Source, foreign.Source = mine, mine, other
	deleted.Cluster.Spec.Lifecycle, deleted.Cluster.Spec.Storage.Retention = v1alpha1.LifecycleDeleted, v1alpha1.RetentionDelete
	owned.At("ns", "a").Claims = 1
	desired := reconcile.Desired{
		Clusters: []reconcile.Declaration{deleted, kept, foreign}, Confirmed: []string{"1"}, Warnings: []string{"earlier"},
		Sources: []reconcile.SourceState{{Name: mine, Revision: "main@sha1:9"}, {Name: other, Revision: "main@sha1:8"}},
	}
	got := Resolve(desired, owned, &Deletions{Most: new(int)}, func(all []Target, desired reconcile.Desired) {
		if len(desired.Clusters) != 2 {
			t.Errorf("the run's checks received %d declarations", len(desired.Clusters))
		}
		all[0].Problems = nil // the test's spec is incomplete
		all[1].Problems = []string{"refused by the run"}
	})
	if len(got.Desired.Clusters) != 2 || len(got.Desired.Problems) != 1 || len(got.Targets) != 5 || len(got.Removals) != 1 {
		t.Fatalf("%d declarations, %q, %d targets, %q", len(got.Desired.Clusters), got.Desired.Problems, len(got.Targets), got.Removals)
	}
	if w := got.Desired.Warnings; len(w) != 2 || w[0] != "earlier" || !strings.HasPrefix(w[1], "--confirm-removals names 1,") {
		t.Errorf("warnings: %q", w)
	}
	if p := got.Targets[0].Problems; len(p) != 1 || !strings.Contains(p[0], FlagMaxDeletions) {
		t.Errorf("problems of the cluster that would be deleted: %q", p)
	}
	if p := got.Targets[1].Problems; len(p) != 1 || p[0] != "refused by the run" {
		t.Errorf("problems of the other cluster: %q", p)
	}
	if len(desired.Warnings) != 1 || len(desired.Clusters) != 3 {
		t.Errorf("the argument was changed: %+v", desired)
	}
	if got := Resolve(desired, owned, &Deletions{}, nil); strings.Contains(strings.Join(got.Targets[1].Problems, " "), "refused") {
		t.Errorf("without checks of the run: %q", got.Targets[1].Problems)
	}
}
