package reconcile_test

import (
	"log/slog"
	"testing"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestApprovedRunExecutesOnlyItsPlan checks that an approved run executes the planned actions if the declarations are
// unchanged, and refuses any other action if something goes wrong.
func TestApprovedRunExecutesOnlyItsPlan(t *testing.T) {
	for _, goesWrong := range []bool{false, true} {
		w := simulate.New("a", decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, 0)
		w.Converge(20)
		w.Declared.Replicas = 5
		src := &source{}
		held := &reconcile.FetchOnce{Source: src}
		l := &live{worlds: map[string]*simulate.World{"a": w}}
		log := slog.New(slog.DiscardHandler)

		planner := reconcile.Reconciler{Source: held, Live: l, Log: log, Plan: true}
		plan := planner.Pass(t.Context())
		if plan.Digest() == "" || len(l.done) > 0 {
			t.Fatalf("the plan is %+v, and did %q", plan, l.done)
		}
		if goesWrong {
			w.LoseVolume(1)
		}
		r := reconcile.Reconciler{Source: held, Live: l, Log: log, Approval: approval.Of(plan)}
		rep, converged := r.UntilConverged(t.Context())
		d := rep.Clusters[0].Decision
		switch {
		case !converged || src.fetches != 1:
			t.Errorf("converged %t, %d fetches: %s", converged, src.fetches, d)
		case !goesWrong && d.Verdict != decide.Done:
			t.Errorf("it ends with %s", d)
		case goesWrong && (d.Verdict != decide.Block || d.Rule != approval.Rule):
			t.Errorf("it ends with %s after %q", d, l.done)
		case goesWrong && len(w.Observe().Membership.Members) != 3:
			t.Errorf("members have changed: %q", l.done)
		}
	}
}
