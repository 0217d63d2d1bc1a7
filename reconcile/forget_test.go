package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/report"
)

// TestLoopForgetsClustersWhileNamespaceCannotBeListed checks that a loop discards the state of deleted clusters even if
// an unrelated namespace cannot be listed. It keeps the state of clusters that may still exist.
func TestLoopForgetsClustersWhileNamespaceCannotBeListed(t *testing.T) {
	for _, c := range []struct {
		name   string
		rep    report.Report
		unseen bool
		kept   string
	}{
		{name: "all listed", kept: "shop/a"},
		{name: "a namespace failed", rep: report.Report{Unobserved: true, UnlistedIn: []string{"bank"}}, kept: "bank/z shop/a"},
		{name: "a namespace is forbidden", rep: report.Report{UnlistedIn: []string{"bank"}}, kept: "bank/z shop/a"},
		{name: "unknown what failed", rep: report.Report{Unobserved: true}, kept: "bank/z shop/a shop/gone"},
		{name: "nothing listed", unseen: true, kept: "bank/z shop/a shop/gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Reconciler{failed: map[string]bool{}, inFlight: newInFlight()}
			in := &feed{unseen: c.unseen, untaken: map[sourceAndCluster]bool{}}
			todo := newQueue(&backoff{failures: map[string]int{}, did: map[string]lastChange{}})
			acted := map[string]*report.Outcome{}
			for _, cluster := range []string{"shop/a", "shop/gone", "bank/z"} {
				r.failed[cluster], r.inFlight.begun[cluster], r.inFlight.slow[cluster] = true, true, true
				r.said.Store(cluster+" report", "no")
				in.untaken[sourceAndCluster{"two", cluster}] = true
				todo.changed[cluster], todo.backoff.failures[cluster], acted[cluster] = true, 1, nil
				todo.backoff.did[cluster] = lastChange{}
			}
			c.rep.Others = []string{"shop/a"}
			r.passed(todo, in, c.rep, acted, true)
			said, untaken := map[string]bool{}, map[string]bool{}
			r.said.Range(func(about, _ any) bool {
				said[strings.TrimSuffix(about.(string), " report")] = true
				return true
			})
			for change := range in.untaken {
				untaken[change.cluster] = true
			}
			for name, got := range map[string][]string{
				"failed": slices.Sorted(maps.Keys(r.failed)), "begun": slices.Sorted(maps.Keys(r.inFlight.begun)),
				"slow": slices.Sorted(maps.Keys(r.inFlight.slow)), "said": slices.Sorted(maps.Keys(said)),
				"untaken": slices.Sorted(maps.Keys(untaken)), "changed": slices.Sorted(maps.Keys(todo.changed)),
				"failures": slices.Sorted(maps.Keys(todo.backoff.failures)), "acted": slices.Sorted(maps.Keys(acted)),
				"did": slices.Sorted(maps.Keys(todo.backoff.did)),
			} {
				if strings.Join(got, " ") != c.kept {
					t.Errorf("%s: kept %q, want %s", name, got, c.kept)
				}
			}
		})
	}
}
