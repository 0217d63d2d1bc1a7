package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// isWhole reports whether every declared member is a healthy voter.
func isWhole(w *simulate.World) bool {
	s := w.Observe()
	voters := s.Membership.Voters()
	return s.Membership.Known && len(voters) == s.Declared.Replicas && decide.Answering(voters) == len(voters)
}

// worldsWithLoss returns worlds in which a member has lost its volume, one without and others with another incident.
// Unless the run is thorough, only every third incident is included.
func worldsWithLoss(t *testing.T) map[string]*simulate.World {
	worlds, all := map[string]*simulate.World{}, incidents(3)
	for i, b := range append(all, incident{name: "nothing else", do: func(*simulate.World) {}}) {
		if i < len(all) && (testing.Short() || i%3 != 0 && !thorough()) {
			continue
		}
		w := formed(t, 3)
		w.Unpullable, w.Crashing = "3.6.99", "crashing"
		w.LoseVolume(1)
		b.do(w)
		worlds[b.name] = w
	}
	return worlds
}

// healingActions returns the kinds of actions that passes execute until a lost member is replaced. It returns nil if
// the member is not replaced, because the spec forbids it or because other members are also lost.
func healingActions(start *simulate.World) map[string]bool {
	w, kinds := start.Clone(), map[string]bool{}
	for range anHour {
		if isWhole(w) {
			return kinds
		}
		if d, _ := w.Pass(simulate.NoCrash); d.Verdict == decide.Act {
			kinds[decide.KindOf(d.Action)] = true
		}
		w.Tick()
	}
	return nil
}

// TestRevertedActionDoesNotStarveHealing checks that a lost member is replaced within an hour, or a Block names the
// reverted action, if one kind of action is reverted after every pass. Worlds without a custom resource are skipped,
// because passes cannot record reverted actions there.
func TestRevertedActionDoesNotStarveHealing(t *testing.T) {
	for name, start := range worldsWithLoss(t) {
		if strings.HasPrefix(name, "delete EtcdCluster") {
			continue
		}
		for kind := range healingActions(start) {
			undo := func(w *simulate.World, before *simulate.World, d decide.Decision) {
				if decide.KindOf(d.Action) == kind {
					w.Undo(before)
				}
			}
			if fault := healsWhile(start.Clone(), kind, undo); fault != "" {
				t.Errorf("%s, %s undone: %s", name, kind, fault)
			}
		}
	}
}

// TestObjectChangedByOthersDoesNotStarveHealing checks that a lost member is still replaced within an hour if another
// controller changes one object after every pass.
func TestObjectChangedByOthersDoesNotStarveHealing(t *testing.T) {
	for name, start := range worldsWithLoss(t) {
		if len(healingActions(start)) == 0 {
			continue
		}
		for _, object := range start.Objects() {
			change := func(w *simulate.World, _ *simulate.World, _ decide.Decision) { w.Change(object) }
			if fault := healsWhile(start.Clone(), "", change); fault != "" {
				t.Errorf("%s, %s changed: %s", name, object, fault)
			}
		}
	}
}

// TestObjectsRevertedInTurnDoNotStarveHealing checks that a lost member is still replaced within an hour if another
// controller reverts two objects at different intervals, so that the drift alternates.
func TestObjectsRevertedInTurnDoNotStarveHealing(t *testing.T) {
	for name, pace := range map[string][2]int{"both at once": {1, 1}, "one slower": {1, 2}, "in turn": {2, 2}, "slowly": {3, 4}} {
		w := formed(t, 3)
		w.LoseVolume(1)
		passes := 0
		revert := func(w, _ *simulate.World, _ decide.Decision) {
			if passes%pace[0] == 0 {
				w.Change("Service a-client")
			}
			if passes%pace[1] == pace[1]-1 {
				w.Change("PodDisruptionBudget a")
			}
			passes++
		}
		if fault := healsWhile(w, "", revert); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestRecordPutBackRepeatedlyEndsInBlock checks that a Block reports that Seal keeps being reverted if another
// controller restores the bootstrap record every few passes and the lost member therefore cannot be replaced.
func TestRecordPutBackRepeatedlyEndsInBlock(t *testing.T) {
	for _, every := range []int{1, 2, 3, 4} {
		w := formed(t, 3)
		w.LoseVolume(1)
		passes := 0
		putBack := func(w, _ *simulate.World, _ decide.Decision) {
			if passes++; passes%every == 0 {
				w.PutBackRecord()
			}
		}
		if fault := healsWhile(w, "Seal", putBack); fault != "" {
			t.Errorf("every %d passes: %s", every, fault)
		}
	}
}

// healsWhile runs passes for up to an hour, and calls others after each pass. It returns a fault if a violation occurs,
// or if the lost member is not replaced and the last decision does not name the reverted action.
func healsWhile(w *simulate.World, names string, others func(w, before *simulate.World, d decide.Decision)) string {
	var d decide.Decision
	for range anHour {
		before := w.Clone()
		d, _ = w.Pass(simulate.NoCrash)
		others(w, before, d)
		w.Tick()
		if faults := w.Violations(); len(faults) > 0 {
			return faults[0]
		}
		if isWhole(w) {
			return ""
		}
	}
	if named := names != "" && d.Verdict == decide.Block && strings.Contains(d.Message, names+" keeps being reverted"); named {
		return ""
	}
	return fmt.Sprintf("after an hour the member is lost, and it says %s", d)
}

// TestRewritingPolicyDoesNotStarveHealing checks that, if an admission policy permanently rewrites a field of an
// object, a lost member is still replaced and the object is not applied repeatedly. If security depends on the field, a
// Block names the object, and a lost member is replaced once the policy is removed.
func TestRewritingPolicyDoesNotStarveHealing(t *testing.T) {
	for _, object := range formed(t, 3).Objects() {
		w := formed(t, 3)
		w.Rewrite(object)
		w.Change(object)
		w.LoseVolume(1)
		writes := 0
		for range anHour {
			_, written := w.Pass(simulate.NoCrash)
			for _, name := range written {
				if name == object {
					writes++
				}
			}
			w.Tick()
		}
		if d := decide.Decide(w.Observe()); d.Verdict != decide.Done || !isWhole(w) || writes > 8 {
			t.Errorf("%s: applied %d times, whole %t, and the decision is %s", object, writes, isWhole(w), d)
		}

		w = formed(t, 3)
		w.RewriteUnsafely(object)
		w.Change(object)
		steps := w.Converge(patienceOfTests)
		if last := steps[len(steps)-1].Decision; object != "EtcdCluster a" && (last.Verdict != decide.Block || last.Rule != "FieldsRewritten" || !strings.Contains(last.Message, object)) {
			t.Errorf("%s, rewritten unsafely: got %s", object, last)
		}
		w.StopRewriting()
		w.LoseVolume(1)
		for range anHour {
			w.Pass(simulate.NoCrash)
			w.Tick()
		}
		if d := decide.Decide(w.Observe()); d.Verdict != decide.Done || !isWhole(w) {
			t.Errorf("%s, no longer rewritten: got %s", object, d)
		}
	}
}
