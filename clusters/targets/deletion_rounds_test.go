package targets

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestConcurrentLoopsShareDeletionLimit checks that loops that manage the same clusters do not start a second deletion
// while a cluster is being deleted, whichever loop started its deletion. All loops restart counting at the same time.
func TestConcurrentLoopsShareDeletionLimit(t *testing.T) { synctest.Test(t, testDeletionsOfReplicas) }

func testDeletionsOfReplicas(t *testing.T) {
	const round = 10 * time.Minute
	one, owned := 1, inventory.ByCluster{}
	var targets []Target
	for _, name := range []string{"a", "b"} {
		d := Target{Cluster: v1alpha1.EtcdCluster{Spec: doomed()}}
		d.Cluster.Name, d.Cluster.Namespace = name, "ns"
		targets = append(targets, d)
		custom := d.Cluster.DeepCopy()
		custom.Spec.Lifecycle = v1alpha1.LifecycleRunning
		owned.At("ns", name).Custom, owned.At("ns", name).Pods = custom, 1
	}
	waits := func(d *Deletions) bool { return len(d.Limit(slices.Clone(targets), owned, false)[1].Problems) > 0 }
	first, second := &Deletions{Most: &one, Round: round}, &Deletions{Most: &one, Round: round}
	time.Sleep(round / 2)
	if !waits(first) {
		t.Fatal("both deletions may start")
	}
	owned.At("ns", "a").Custom.Spec = doomed() // the deletion of a has started
	time.Sleep(round / 4)
	if !waits(second) { // the second loop starts only now
		t.Error("the second loop starts deleting b while the first deletes a")
	}
	owned.At("ns", "a").Pods = 0 // a has been deleted
	if !waits(first) || !waits(second) {
		t.Error("the deletion of b may start in the same round")
	}
	time.Sleep(round / 4)
	if waits(first) || waits(second) {
		t.Error("the deletion of b may not start in the next round")
	}
}

// TestClockJumpDoesNotStopDeletionRounds checks that, after the clock has briefly been ahead, new rounds do not wait
// until real time has caught up. A clock that is set back slightly does not start an extra round.
func TestClockJumpDoesNotStopDeletionRounds(t *testing.T) {
	d, now := &Deletions{Round: 10 * time.Minute}, time.Date(2026, 11, 1, 12, 0, 1, 0, time.UTC)
	key := inventory.Key{Namespace: "ns", Name: "a"}
	for _, step := range []struct {
		after  time.Duration
		counts bool
	}{
		{0, true}, {time.Minute, false}, {10 * time.Minute, true}, {10*time.Minute - 2*time.Second, false},
		{10 * 365 * 24 * time.Hour, true}, {12 * time.Minute, true}, {13 * time.Minute, false}, {20 * time.Minute, true},
	} {
		d.places = map[inventory.Key]*granted{key: {owner: "s"}}
		if d.recount(now.Add(step.after)); len(d.places) == 0 != step.counts {
			t.Errorf("after %s: counted again = %t, want %t", step.after, !step.counts, step.counts)
		}
	}
}
