package simulate_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestConfirmationIsValidOnce checks that a confirmation of a member list that is still in git does not confirm the loss
// of members a second time, even if the record was deleted, or restored to a version from before the confirmation.
func TestConfirmationIsValidOnce(t *testing.T) {
	for what, lose := range map[string]func(lostMajority){
		"the record is kept":     func(lostMajority) {},
		"the record is deleted":  func(w lostMajority) { w.Delete("ConfigMap a-members") },
		"the record is restored": func(w lostMajority) { w.RestoreObject("ConfigMap a-members", 62) },
	} {
		w := formedWith(t, 3)
		w.ForceNewCluster(0)
		w.passes(5)
		w.Declared.ConfirmedMembers = []decide.ID{memberNamed(t, w.World, "a-0").ID}
		w.passes(60)
		expectDone(t, w)
		lose(w)
		w.passes(10)
		expectDone(t, w)
		w.ForceNewCluster(0)
		for {
			d, _ := w.Pass(simulate.NoCrash)
			if d.Rule == "MembersMissing" {
				break
			}
			if _, deletes := d.Action.(decide.DeleteVolume); deletes || d.Verdict == decide.Done {
				t.Errorf("%s: %v: %s", what, d.Action, d.Message)
				break
			}
			w.Tick()
		}
	}
}

// TestSameListCanBeConfirmedAgain checks that a list can be confirmed again after the annotation was removed from git.
func TestSameListCanBeConfirmedAgain(t *testing.T) {
	w := formedWith(t, 3)
	for range 2 {
		w.ForceNewCluster(0)
		w.passes(5)
		if d := decide.Decide(w.Observe()); d.Rule != "MembersMissing" {
			t.Fatalf("%s: %s", d.Rule, d.Message)
		}
		w.Declared.ConfirmedMembers = []decide.ID{memberNamed(t, w.World, "a-0").ID}
		w.passes(60)
		expectDone(t, w)
		w.Declared.ConfirmedMembers = nil
		w.passes(10)
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
