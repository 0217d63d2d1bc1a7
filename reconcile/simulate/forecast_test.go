package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestForecastMatchesPasses checks that passes execute the actions that the forecast predicts: from every beginning, at
// every moment of every change, and after every incident that is visible in a state.
func TestForecastMatchesPasses(t *testing.T) {
	for name, w := range beginnings(3, 0) {
		t.Run(name, func(t *testing.T) { isTaken(t, w) })
	}
	for _, change := range changesOf {
		if strings.HasPrefix(change, "fault corrupt") {
			continue
		}
		t.Run(change, func(t *testing.T) {
			for _, p := range momentsOf(change, 0) {
				isTaken(t, p.path.World)
			}
		})
	}
	for _, b := range incidents(3) {
		if b.end != nil || b.name == "unpullable version" || strings.HasPrefix(b.name, "differ") || strings.HasPrefix(b.name, "corrupt ") {
			continue // as in TestFrom
		}
		t.Run(b.name, func(t *testing.T) {
			w := formed(t, 3)
			b.do(w)
			isTaken(t, w)
			w.Tick()
			isTaken(t, w)
		})
	}
}

// TestForecastHandlesUnresponsiveLearner checks that a learner that has joined but does not accept clients yet does not
// make the forecast open.
func TestForecastHandlesUnresponsiveLearner(t *testing.T) {
	w := formedTogether(t, 3)
	w.Declared.Replicas = 5
	w.Mute(3, true)
	w.Unready(3, true)
	for n := 0; n < patienceOfTests && decide.Decide(w.Observe()).Rule != "JoinTogether"; n++ {
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
	s := w.Observe()
	if m := memberNamed(t, w, "a-3"); m.Answers || !m.Started || s.Replica(3).Pod != decide.PodStarting {
		t.Fatalf("the learner is %+v, its pod %s", m, s.Replica(3).Pod)
	}
	ahead := forecast.Of(s)
	if ahead.Open || ahead.End.Verdict != decide.Done || ahead.Steps[0].What != "AddLearner a-4" {
		t.Errorf("open: %t, end: %s\n%s", ahead.Open, ahead.End, ahead.Text(""))
	}
}

// TestForecastContinuesAfterRestore checks that the forecast in each step of a restore contains the steps that are taken,
// although the restored member has not started yet.
func TestForecastContinuesAfterRestore(t *testing.T) {
	declared := decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h",
		Restore: decide.RestoreSource{From: "tuesday of b/a", Digest: "d1"}}
	w := simulate.New("a", declared, 0)
	for n := range 12 {
		t.Run(fmt.Sprintf("after %d passes", n), func(t *testing.T) {
			isTaken(t, w)
			endsConverged(t, w.Observe())
		})
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
}

// endsConverged checks the forecast with the IDs of a real restored cluster, which differ from the simulated IDs, and with
// a first member that responds but does not return a member list yet. The Job may not have reported the IDs.
func endsConverged(t *testing.T, s decide.State) {
	t.Helper()
	if !s.Record.Unproven() || s.Membership.Known {
		return
	}
	real := decide.RestoredData{ClusterID: 0xcafe, MemberID: 0xbeef, Revision: 123456}
	for what, data := range map[string]decide.RestoredData{"reported": real, "not reported": {}} {
		for _, responds := range []bool{false, true} {
			s := s
			s.Record.Restored = data
			s.Membership = decide.Membership{Why: "no pod responds"}
			s.Replicas = slices.Clone(s.Replicas)
			for i := range s.Replicas {
				if responds && s.Replicas[i].Pod != decide.PodAbsent {
					s.Replicas[i].Pod, s.Replicas[i].ClusterID = decide.PodStarting, real.ClusterID
				}
			}
			if ahead := forecast.Of(s); ahead.Open || ahead.End.Verdict != decide.Done {
				t.Errorf("restored data %s, first member responds: %t: open: %t, end: %s", what, responds, ahead.Open, ahead.End)
			}
		}
	}
}

func isTaken(t *testing.T, w *simulate.World) {
	t.Helper()
	ahead := forecast.Of(w.Observe())
	if ahead.Open {
		t.Errorf("the forecast is open: %s\nbut in a constructed world: %s", decide.Decide(w.Observe()), decide.Decide(simulate.From(w.Observe(), 0).Observe()))
		return
	}
	var foretold, taken []string
	for _, step := range ahead.Steps {
		foretold = append(foretold, step.Rule+" "+decide.KindOf(step.Action))
	}
	steps := w.Clone().Converge(patienceOfTests)
	for _, step := range steps {
		if step.Decision.Verdict == decide.Act {
			taken = append(taken, step.Decision.Rule+" "+decide.KindOf(step.Decision.Action))
		}
	}
	if end := steps[len(steps)-1].Decision; !slices.Equal(foretold, taken) || ahead.End.Rule != end.Rule || ahead.End.Verdict != end.Verdict {
		t.Errorf("foretold\n%s\n%s\ntaken\n%s\n%s", strings.Join(foretold, "\n"), ahead.End, strings.Join(taken, "\n"), end)
	}
}

// TestForecastIsFinite checks that the forecast after any manual action has at most 100 steps.
func TestForecastIsFinite(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		for i, p := range beginningsOf(replicas, 0) {
			for j, deed := range deeds(replicas) {
				t.Run(fmt.Sprintf("%d replicas, %d %s", replicas, i, deed.do), func(t *testing.T) {
					if !taken(i + j) {
						return
					}
					w := p.after(deed.do).path.World
					s := w.Observe()
					ahead := forecast.Of(s)
					if len(ahead.Steps) > 100 {
						t.Errorf("%d steps:\n%s", len(ahead.Steps), ahead.Text(""))
					}
				})
			}
		}
	}
}
