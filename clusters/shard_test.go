package clusters

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// planned returns the plan of a run over a part of the fleet.
func (f *quietFleet) planned(part shard.Shard) report.Report {
	f.Helper()
	one := 1
	live := New(f.client, Options{Timeout: time.Minute, Shard: part, MaxDeletions: &one})
	rep := (&reconcile.Reconciler{Source: f, Live: live, Log: slog.New(slog.DiscardHandler), Plan: true}).Pass(f.Context())
	f.check(live.Close(f.Context()))
	return rep
}

// told returns everything in a report except the time.
func told(t *testing.T, clusters []report.Cluster) (lines []string) {
	t.Helper()
	for _, c := range clusters {
		c.State.Now = time.Time{}
		state, err := json.Marshal(c.State)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(c.Key(), c.Decision, c.Warnings, c.Error, string(state)))
	}
	slices.Sort(lines)
	return lines
}

// TestShardsDecideLikeOneRun checks that two shards, each deciding for its own clusters, together make the same
// decisions as one run. Limits over all clusters are the same in each shard: one of the deletions may start, and
// clusters that the source no longer declares are held.
func TestShardsDecideLikeOneRun(t *testing.T) {
	f := newQuietFleet(t, 16)
	for i := range 4 {
		d := &f.desired.Clusters[i]
		d.Cluster.Spec.Lifecycle, d.Cluster.Spec.Storage.Retention = v1alpha1.LifecycleDeleted, v1alpha1.RetentionDelete
		d.Applied["spec"] = map[string]any{"version": "3.6.16", "replicas": int64(3), "lifecycle": "Deleted",
			"storage": map[string]any{"retention": "Delete"}}
	}
	f.desired.Clusters = f.desired.Clusters[:7] // fewer than half
	whole := f.planned(shard.Shard{})
	if len(whole.Clusters) != 16 || len(whole.Removals) != 1 {
		t.Fatalf("%d clusters, removals %v", len(whole.Clusters), whole.Removals)
	}
	var both []report.Cluster
	for i := range 2 {
		part := shard.Shard{Index: i, Of: 2}
		rep := f.planned(part)
		if fmt.Sprint(rep.Removals) != fmt.Sprint(whole.Removals) {
			t.Errorf("shard %s: removals %v, want %v", part, rep.Removals, whole.Removals)
		}
		for _, c := range rep.Clusters {
			if !part.Owns(c.Key()) {
				t.Errorf("shard %s reports %s", part, c.Key())
			}
		}
		both = append(both, rep.Clusters...)
	}
	if got, want := told(t, both), told(t, whole.Clusters); !slices.Equal(got, want) {
		t.Errorf("both shards:\n%s\nwant the result of one run:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	begun := 0
	for _, c := range both {
		if c.State.Declared.Lifecycle == decide.Deleted {
			begun++
		}
	}
	if begun != 1 {
		t.Errorf("%d deletions begin, want 1", begun)
	}
}
