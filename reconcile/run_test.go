package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestPassContinuesUntilBootstrapIsSealed checks that a single pass continues until the members of a new cluster are
// sealed, because until then the cluster could be bootstrapped again.
func TestPassContinuesUntilBootstrapIsSealed(t *testing.T) {
	l := oneCluster()
	rep := reconciler(&source{}, l).Pass(t.Context())
	if len(l.done) != 2 || l.done[0] != "Bootstrap replicas=3" || l.done[1] != "Seal members=0,1,2 cluster=b4cca55d" {
		t.Fatalf("did %q", l.done)
	}
	c := rep.Clusters[0]
	if c.BeingFounded() || c.Decision.Rule != decide.Converged || c.Outcome == nil || !c.Outcome.Changed {
		t.Errorf("got %+v", c)
	}
}

// TestPassResumesBootstrap checks the same for a pass that follows a pass interrupted during the bootstrap.
func TestPassResumesBootstrap(t *testing.T) {
	l := oneCluster()
	l.worlds["a"].Do(decide.Bootstrap{Replicas: 3}, simulate.NoCrash)
	reconciler(&source{}, l).Pass(t.Context())
	if !slices.Equal(l.done, []string{"Seal members=0,1,2 cluster=b4cca55d"}) {
		t.Errorf("did %q", l.done)
	}
}

// TestPassRepeatsOnlyForBootstraps checks that Pass continues only for clusters that are being bootstrapped. Other
// clusters get one action each.
func TestPassRepeatsOnlyForBootstraps(t *testing.T) {
	grown := worldOf("b")
	l := &live{worlds: map[string]*simulate.World{"a": grown}}
	reconciler(&source{}, l).UntilConverged(t.Context())
	grown.Declared.Replicas = 5
	l.worlds = map[string]*simulate.World{"a": worldOf("a"), "b": grown}
	rep := reconciler(&source{}, l).Pass(t.Context())
	if len(rep.Clusters) != 2 || rep.Clusters[0].Decision.Rule != decide.Converged {
		t.Fatalf("got %+v", rep.Clusters)
	}
	if b := rep.Clusters[1]; b.Decision.Rule != "ApplyObjects" || len(grown.Observe().Membership.Members) != 3 {
		t.Errorf("b was acted on more than once: %s", b.Decision)
	}
}

// TestUnfinishedBootstrapIsReported checks that the report describes the bootstrap as unfinished.
func TestUnfinishedBootstrapIsReported(t *testing.T) {
	l := oneCluster()
	l.worlds["a"].Unpullable = "3.6.16"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	rep := reconciler(&source{}, l).Pass(ctx)
	if c := rep.Clusters[0]; !c.BeingFounded() || len(l.done) != 1 {
		t.Errorf("did %q, got %s", l.done, c.Decision)
	}
}

// TestStoppedPassStillReportsDecision checks that a decision is included in the status and the report even if the pass
// is stopped immediately after the decision.
func TestStoppedPassStillReportsDecision(t *testing.T) {
	for name, run := range map[string]func(context.Context, *reconcile.Reconciler) report.Report{
		"one pass": func(ctx context.Context, r *reconcile.Reconciler) report.Report { return r.Pass(ctx) },
		"until converged": func(ctx context.Context, r *reconcile.Reconciler) report.Report {
			rep, _ := r.UntilConverged(ctx)
			return rep
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			l := oneCluster()
			l.telling = func(entry report.Cluster) {
				if entry.Decision.Rule == "Seal" {
					stop()
				}
			}
			rep := run(ctx, reconciler(&source{}, l))
			if last := l.reported[len(l.reported)-1]; last.Decision.Rule != "Seal" {
				t.Errorf("last reported %s", last.Decision)
			}
			if c := rep.Clusters[0]; c.Decision.Rule != "Seal" || c.Error != "" || c.Outcome == nil {
				t.Errorf("reports %s, error %q", c.Decision, c.Error)
			}
		})
	}
}

// TestBlockedBootstrapDoesNotHoldPass checks that a pass does not wait for a bootstrap that requires manual action or
// has not started.
func TestBlockedBootstrapDoesNotHoldPass(t *testing.T) {
	founding := decide.State{Record: decide.FoundingRecord("t", 1), Replicas: []decide.Replica{{}}}
	for _, test := range []struct {
		name  string
		entry report.Cluster
		want  bool
	}{
		{"waits", report.Cluster{State: founding, Decision: decide.Decision{Verdict: decide.Wait}}, true},
		{"blocked", report.Cluster{State: founding, Decision: decide.Decision{Verdict: decide.Block}}, false},
		{"founded just now", report.Cluster{Outcome: &report.Outcome{Changed: true}, Decision: decide.Decision{Verdict: decide.Act, Action: decide.Bootstrap{}}}, true},
		{"could not be founded", report.Cluster{Error: "forbidden", Decision: decide.Decision{Verdict: decide.Act, Action: decide.Bootstrap{}}}, false},
		{"no pod can start", report.Cluster{State: decide.State{Record: founding.Record}, Decision: decide.Decision{Verdict: decide.Act}}, false},
		{"not observed", report.Cluster{Error: "timeout"}, false},
	} {
		if got := test.entry.BeingFounded(); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

var _ reconcile.Live = (*live)(nil)
