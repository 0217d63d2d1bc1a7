package forecast_test

import (
	"slices"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestUnknownStateIsARisk checks that an unknown state does not count as safe.
func TestUnknownStateIsARisk(t *testing.T) {
	unasked := func(s *decide.State) {
		s.Membership = decide.Membership{Why: "its Secrets could not be read"}
		for i := range s.Replicas {
			s.Replicas[i].ClusterID = 0
		}
	}
	for name, test := range map[string]struct {
		replicas int
		change   func(*simulate.World)
		see      func(*decide.State)
		want     forecast.Risk
	}{
		"shrinks, and etcd was not asked": {3, func(w *simulate.World) { w.Declared.Replicas = 1 }, unasked, forecast.Unknown},
		"stops, and etcd was not asked": {3, func(w *simulate.World) { w.Declared.Lifecycle = decide.Stopped }, unasked,
			forecast.Unknown},
		"shrinks, and is locked": {3, func(w *simulate.World) { w.LockHolder = "x"; w.Declared.Replicas = 1 }, nil, forecast.DeletesData},
		"is scaled by hand": {3, nil, func(s *decide.State) {
			s.Objects.RunsReplicas = 1 << 30
			s.LockHolder = "x"
			s.Objects.Drift = []string{"StatefulSet a: x"}
		}, forecast.Unknown},
		"one, while it is starting": {1, func(w *simulate.World) { w.KillPod(0); w.Tick(); w.Declared.SpecHash = "x" }, nil,
			forecast.LosesQuorum},
	} {
		w := formed(test.replicas)
		if test.change != nil {
			test.change(w)
		}
		s := w.Observe()
		if test.see != nil {
			test.see(&s)
		}
		if risks := forecast.Of(s).Risks(); !slices.Contains(risks, test.want) {
			t.Errorf("%s: it risks %v, and not %s", name, risks, test.want)
		}
	}
	for name, r := range map[string]forecast.Forecast{
		"open": {Open: true, Steps: []forecast.Step{{Action: decide.RemoveMember{}}}},
		"wait": {End: decide.Decision{Verdict: decide.Wait}},
	} {
		if !slices.Contains(r.Risks(), forecast.Unknown) {
			t.Errorf("%s: it risks %v", name, r.Risks())
		}
	}
	for _, a := range []decide.Action{decide.DeleteVolume{}, decide.StartRecovery{}, decide.FinishRecovery{}} {
		if r := (forecast.Forecast{Steps: []forecast.Step{{Action: a}}}); !slices.Contains(r.Risks(), forecast.DeletesData) {
			t.Errorf("%s risks %v", decide.KindOf(a), r.Risks())
		}
	}
}

func formed(n int) *simulate.World {
	w := simulate.New("a", decide.Declared{Replicas: n, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, 0)
	w.Converge(40)
	return w
}

// TestOrdinaryChangesHaveNoUnknownRisk checks that ordinary changes have no unknown risk.
func TestOrdinaryChangesHaveNoUnknownRisk(t *testing.T) {
	for name, change := range map[string]func(*simulate.World){
		"roll":    func(w *simulate.World) { w.Declared.SpecHash = "x" },
		"upgrade": func(w *simulate.World) { w.Declared.Version = "3.7.0" },
		"shrink":  func(w *simulate.World) { w.Declared.Replicas = 1 },
		"grow":    func(w *simulate.World) { w.Declared.Replicas = 5 },
		"stop":    func(w *simulate.World) { w.Declared.Lifecycle = decide.Stopped },
		"delete":  func(w *simulate.World) { w.Declared.Lifecycle, w.Declared.Retention = decide.Deleted, decide.Delete },
		"lose":    func(w *simulate.World) { w.LoseVolume(1) },
		"strand":  func(w *simulate.World) { w.Strand(1) },
		"down":    func(w *simulate.World) { w.NodeDown(1, true) },
	} {
		for _, n := range []int{1, 3} {
			for seed := range uint64(3) {
				w := simulate.New("a", decide.Declared{Replicas: n, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, seed)
				unknown, total := 0, 0
				look := func(what string) {
					total++
					if r := forecast.Of(w.Observe()); slices.Contains(r.Risks(), forecast.Unknown) {
						unknown++
						if unknown < 3 {
							t.Logf("%s %s %d seed %d: open %v end %s %s; %.200s", what, name, n, seed, r.Open, r.End.Verdict, r.End.Rule, decide.Decide(w.Observe()))
						}
					}
				}
				for range 30 {
					look("founding")
					w.Pass(simulate.NoCrash)
					w.Tick()
				}
				if n == 1 && (name == "lose" || name == "strand" || name == "down") {
					continue
				}
				change(w)
				for range 40 {
					look("change")
					w.Pass(simulate.NoCrash)
					w.Tick()
				}
				if unknown > 0 {
					t.Errorf("%s %d: %d of %d unknown", name, n, unknown, total)
				}
			}
		}
	}
}
