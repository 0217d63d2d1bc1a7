package simulate_test

import (
	"fmt"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// forcedAndConfirmed returns a cluster whose members a-1 and a-2 have been replaced after they left the member list and
// git confirmed the list. The confirmation is still in git.
func forcedAndConfirmed(t *testing.T) lostMajority {
	t.Helper()
	w := formedWith(t, 3)
	w.ForceNewCluster(0)
	w.untilMissing(t)
	w.Declared.ConfirmedMembers = w.Observe().ListToConfirm()
	w.passes(60)
	expectDone(t, w)
	return w
}

func (w lostMajority) untilMissing(t *testing.T) {
	t.Helper()
	for range 60 {
		if d, _ := w.Pass(simulate.NoCrash); d.Rule == "MembersMissing" {
			return
		}
		w.Tick()
	}
	t.Fatal("MembersMissing did not apply")
}

// expectVolumesKept runs passes and checks that none of them deletes a volume.
func (w lostMajority) expectVolumesKept(t *testing.T, what string) {
	t.Helper()
	for range 80 {
		d, _ := w.Pass(simulate.NoCrash)
		if a, deletes := d.Action.(decide.DeleteVolume); deletes {
			t.Errorf("%s: %v: %s %v", what, a, d.Message, w.Violations())
			return
		}
		w.Tick()
	}
}

// TestConfirmationIsValidForOneLoss checks that a confirmation of a member list that is still in git does not confirm a
// later loss, regardless of what happens to the record in between.
func TestConfirmationIsValidForOneLoss(t *testing.T) {
	cutOff := func(w lostMajority, meanwhile func()) {
		w.CutNetwork(true)
		w.passes(2)
		meanwhile()
		w.passes(5)
		w.ForceNewCluster(0)
		w.passes(5)
		w.CutNetwork(false)
	}
	for what, lose := range map[string]func(lostMajority){
		"the record is kept":     func(w lostMajority) { w.ForceNewCluster(0) },
		"the record is deleted":  func(w lostMajority) { w.Delete("ConfigMap a-members"); w.passes(10); w.ForceNewCluster(0) },
		"the record is restored": func(w lostMajority) { w.RestoreObject("ConfigMap a-members", 62); w.passes(10); w.ForceNewCluster(0) },
		"the record is deleted while etcd cannot be reached": func(w lostMajority) {
			cutOff(w, func() { w.Delete("ConfigMap a-members") })
		},
		"the cluster is deleted and declared again": func(w lostMajority) {
			w.Declared.Lifecycle, w.Declared.Retention = decide.Deleted, decide.Retain
			w.passes(40)
			w.Declared.Lifecycle = decide.Running
			cutOff(w, func() {})
		},
	} {
		w := forcedAndConfirmed(t)
		lose(w)
		w.expectVolumesKept(t, what)
	}
}

// TestRestoredRecordDoesNotDeleteVolumes checks that, if an older record is restored while members are missing, volumes
// that the cluster has used since then are not deleted, even if the record shows their slots as free.
func TestRestoredRecordDoesNotDeleteVolumes(t *testing.T) {
	for what, build := range map[string]func() lostMajority{
		"a confirmation is in git": func() lostMajority { return forcedAndConfirmed(t) },
		"a confirmation was removed from git": func() lostMajority {
			w := forcedAndConfirmed(t)
			w.Declared.ConfirmedMembers = ""
			w.passes(3)
			return w
		},
		"members were removed before": func() lostMajority {
			w := formedWith(t, 3)
			for _, n := range []int{1, 3} {
				w.Declared.Replicas = n
				w.passes(50)
				expectDone(t, w)
			}
			return w
		},
		"the cluster was scaled up": func() lostMajority {
			w := formedWith(t, 1)
			w.Declared.Replicas = 5
			w.passes(125)
			expectDone(t, w)
			return w
		},
	} {
		built := build()
		built.ForceNewCluster(0)
		built.untilMissing(t)
		for ticks := 1; ticks < 140; ticks += 3 {
			w := lostMajority{t, built.Clone()}
			w.RestoreObject("ConfigMap a-members", ticks)
			w.expectVolumesKept(t, fmt.Sprintf("%s, record of %d ticks ago", what, ticks))
		}
	}
}

// TestEachLossCanBeConfirmed checks that git can confirm the loss of the same members more than once.
func TestEachLossCanBeConfirmed(t *testing.T) {
	w := formedWith(t, 3)
	for range 2 {
		w.ForceNewCluster(0)
		w.passes(5)
		if d := decide.Decide(w.Observe()); d.Rule != "MembersMissing" {
			t.Fatalf("%s: %s", d.Rule, d.Message)
		}
		w.Declared.ConfirmedMembers = w.Observe().ListToConfirm()
		w.passes(60)
		expectDone(t, w)
		w.passes(10)
	}
}

// TestUnusedConfirmationIsVoid checks that a confirmation does not confirm a later loss if it was no longer needed when
// a pass read it. A new cluster is forced on the disk of a-0, the disk is restored, and a new cluster is forced on it
// again.
func TestUnusedConfirmationIsVoid(t *testing.T) {
	w := formedWith(t, 3)
	forced := lostMajority{t, w.Clone()}
	forced.ForceNewCluster(0)
	forced.untilMissing(t)
	w.Declared.ConfirmedMembers = forced.Observe().ListToConfirm()
	w.passes(10)
	expectDone(t, w)
	w.ForceNewCluster(0)
	w.expectVolumesKept(t, "the confirmation was never needed")
}

// TestListConfirmedTooLateIsVoid checks that a confirmation of one member's wrong list is void if the other members
// came back before a pass read the confirmation. The list is not accepted in the next outage either.
func TestListConfirmedTooLateIsVoid(t *testing.T) {
	w := formedWith(t, 3)
	outage := func(begins bool) {
		w.Lie(1, begins)
		w.Mute(0, begins)
		w.Mute(2, begins)
		w.passes(5)
	}
	outage(true)
	list := w.Observe().ListToConfirm()
	outage(false)
	w.Declared.ConfirmedMembers = list
	w.passes(10)
	expectDone(t, w)
	outage(true)
	if d := decide.Decide(w.Observe()); d.Rule != "MembershipUnknown" || d.Verdict != decide.Block {
		t.Errorf("%s: %s", d.Rule, d.Message)
	}
}

// TestLostLearnerIsReplaced checks that a learner that is lost at any point of growth is replaced, even if the record
// was deleted before.
func TestLostLearnerIsReplaced(t *testing.T) {
	for _, form := range []func(*testing.T, int) *simulate.World{formed, formedTogether} {
		w := form(t, 1)
		w.Declared.Replicas = 3
		for range 20 {
			for what, harm := range map[string]func(*simulate.World, int){
				"its volume is lost":         (*simulate.World).LoseVolume,
				"its claim is deleted":       (*simulate.World).DeleteVolume,
				"its node is gone":           (*simulate.World).Strand,
				"the cluster is scaled down": func(w *simulate.World, _ int) { w.Declared.Replicas = 1 },
			} {
				for _, member := range []int{1, 2} {
					for _, forgets := range []bool{false, true} {
						expectReplaced(t, w.Clone(), what, harm, member, forgets)
					}
				}
			}
			w.Pass(simulate.NoCrash)
			w.Tick()
		}
	}
}

func expectReplaced(
	t *testing.T, w *simulate.World, what string, harm func(*simulate.World, int), member int, forgets bool,
) {
	t.Helper()
	if forgets {
		w.Delete("ConfigMap a-members")
		lostMajority{t, w}.passes(3)
	}
	harm(w, member)
	var d decide.Decision
	for range 150 {
		if d, _ = w.Pass(simulate.NoCrash); d.Verdict == decide.Done {
			break
		}
		w.Tick()
	}
	if d.Verdict != decide.Done && d.Rule != "QuorumLost" || len(w.Violations()) > 0 {
		t.Errorf("%s of a-%d, record deleted %t: %s: %s %v", what, member, forgets, d.Rule, d.Message, w.Violations())
	}
}

func expectDone(t *testing.T, w lostMajority) {
	t.Helper()
	if d := decide.Decide(w.Observe()); d.Verdict != decide.Done {
		t.Fatalf("%s: %s", d.Rule, d.Message)
	}
}
