package decide_test

import (
	"fmt"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

// revertEachPass runs passes whose actions are always reverted, and calls check with each decision.
func revertEachPass(w *world, check func(pass int, d decide.Decision)) {
	for pass := range 12 {
		d := decide.Decide(w.State)
		check(pass+1, d)
		w.Repeated = decide.Repeats(w.State, d, d.Verdict == decide.Act)
		w.Now = w.Now.Add(10 * time.Second)
	}
}

// TestSuspendedClusterIsNotChangedIfItsDeclarationIsReverted checks that a suspended cluster stays unchanged if another
// controller keeps reverting the custom resource.
func TestSuspendedClusterIsNotChangedIfItsDeclarationIsReverted(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a")
	w.Declared.Suspended, w.Objects.DeclarationDiffers, w.Declared.Replicas = true, true, 1
	revertEachPass(w, func(pass int, d decide.Decision) {
		if broken := invariants.Broken(w.State, d); len(broken) > 0 || d.Rule != "Suspended" {
			t.Errorf("in pass %d: %s\n%q", pass, d, broken)
		}
	})
}

// TestStoppedClusterLosesNoMemberIfItsStopIsReverted checks that the members of a cluster that is declared Stopped are
// not changed if an autoscaler keeps scaling the StatefulSet up.
func TestStoppedClusterLosesNoMemberIfItsStopIsReverted(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a")
	losesVolume(1)(w)
	w.Declared.Lifecycle = "Stopped"
	revertEachPass(w, func(pass int, d decide.Decision) {
		if d.Rule != "Stop" {
			t.Errorf("in pass %d: %s", pass, d)
		}
	})
}

// TestRevertedStopOfPodsIsRetriedInEachPass checks that pods which must not run are stopped in each pass, even if the
// stop keeps being reverted, or if the status falsely claims this.
func TestRevertedStopOfPodsIsRetriedInEachPass(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set record ca=CA1", "set ca secret=CA2 mounted=CA1")
	w.Declared.Lifecycle = "Stopped"
	w.Repeated = []decide.Repeated{{Rule: "CAChanged", What: "StopPods", Times: 9, Last: w.Now}}
	revertEachPass(w, func(pass int, d decide.Decision) {
		if d.Rule != "CAChanged" || decide.KindOf(d.Action) != "StopPods" {
			t.Errorf("in pass %d: %s", pass, d)
		}
	})
}

// TestForgedRepetitionsKeepInvariants checks that entries in the status, whatever they claim to be reverted or delayed,
// never make a decision violate an invariant. They cover every action that the rules want in the state of a story:
// alone, in pairs, and together with each delayed repair.
func TestForgedRepetitionsKeepInvariants(t *testing.T) {
	forged := 0
	for _, s := range statesOfStories(t) {
		s.Repeated = nil
		if len(invariants.Broken(s, decide.Decide(s))) > 0 {
			continue
		}
		for _, list := range forgedRepetitions(s) {
			f := decidetest.Clone(s)
			f.Repeated = list
			d := decide.Decide(f)
			if broken := invariants.Broken(f, d); len(broken) > 0 {
				t.Fatalf("%+v\nwithout them: %s\nwith them: %s\n%q", list, decide.Decide(s), d, broken)
			}
			forged++
		}
	}
	if forged < 1000 {
		t.Errorf("only %d forged lists were checked", forged)
	}
}

// forgedRepetitions returns lists of entries that a forged status of s may contain, recent and old.
func forgedRepetitions(s decide.State) (lists [][]decide.Repeated) {
	var undone []decide.Repeated
	for _, o := range decide.Opinions(s) {
		if o.Decision.Verdict != decide.Act { // nothing can be reverted
			continue
		}
		for _, e := range decide.Repeats(s, decide.Decision{Rule: o.Rule}, true) {
			if e.Rule == o.Rule && e.What != "preempted" {
				undone = append(undone, e)
			}
		}
	}
	for _, age := range []time.Duration{0, time.Hour} {
		for i := range undone {
			undone[i].Times, undone[i].Last = 9, s.Now.Add(-age)
		}
		for i, first := range undone {
			lists = append(lists, []decide.Repeated{first})
			for _, second := range undone[i+1:] {
				lists = append(lists, []decide.Repeated{first, second})
			}
			for _, repair := range []string{"CancelDowngrade", "RestartBroken", "CleanUp", "ReplaceMember", "JoinTogether", "PromoteLearner", "ScaleUp"} {
				lists = append(lists, []decide.Repeated{first, {Rule: repair, What: "preempted", Times: 9, Last: s.Now}})
			}
		}
	}
	return lists
}

// TestDeclaredStopPrecedesRepairs checks that a cluster that is declared Stopped or Deleted is not changed otherwise,
// although the status claims that its stop was reverted and a repair was delayed.
func TestDeclaredStopPrecedesRepairs(t *testing.T) {
	for _, s := range statesOfStories(t) {
		s.Repeated = nil
		honest := decide.Decide(s)
		if s.Declared.Lifecycle == "Running" || honest.Rule != "Stop" {
			continue
		}
		for _, list := range forgedRepetitions(s) {
			f := decidetest.Clone(s)
			f.Repeated = list
			if d := decide.Decide(f); d.Verdict == decide.Act && d.Rule != "Stop" {
				t.Fatalf("%s, %+v: %s instead of %s", s.Declared.Lifecycle, list, fmt.Sprint(d), honest)
			}
		}
	}
}
