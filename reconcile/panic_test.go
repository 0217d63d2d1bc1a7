package reconcile_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestPanicAffectsOnlyItsCluster checks that a panic while processing a cluster becomes an error of that cluster, that
// the log contains the stack, and that the other clusters are still processed.
func TestPanicAffectsOnlyItsCluster(t *testing.T) {
	for _, method := range []string{"Warnings", "State", "Do", "Report"} {
		t.Run(method, func(t *testing.T) {
			l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "b": worldOf("b")}}
			r := reconciler(&source{}, l)
			r.UntilConverged(t.Context())
			l.bursts = map[string]string{"a": method}
			var log bytes.Buffer
			r.Log = slog.New(slog.NewTextHandler(&log, nil))
			for range 2 { // the second pass still works
				for _, world := range l.worlds {
					world.Declared.Replicas += 2
				}
				rep := r.Pass(t.Context())
				checkBurst(t, rep, method)
			}
			if !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "burst(") {
				t.Errorf("logged %s", log.String())
			}
		})
	}
}

func checkBurst(t *testing.T, rep report.Report, method string) {
	t.Helper()
	if len(rep.Clusters) != 2 {
		t.Fatalf("reported %+v", rep)
	}
	a, b := rep.Clusters[0], rep.Clusters[1]
	if a.Key() != "ns/a" || !strings.Contains(a.Error, "panic: \"burst in "+method+"\"; this is a bug in Quorate") {
		t.Errorf("of a: %+v", a)
	}
	if b.Key() != "ns/b" || b.Error != "" || b.Outcome == nil {
		t.Errorf("of b: %+v", b)
	}
}

// TestPanicIsReportedInStatus checks that the status of a cluster reports a panic in its action.
func TestPanicIsReportedInStatus(t *testing.T) {
	l := oneCluster()
	r := reconciler(&source{}, l)
	r.UntilConverged(t.Context())
	l.worlds["a"].Declared.Replicas, l.bursts, l.reported = 5, map[string]string{"a": "Do"}, nil
	r.Pass(t.Context())
	if len(l.reported) != 1 || !strings.Contains(l.reported[0].Error, "panic: \"burst in Do\"") {
		t.Errorf("reported %+v", l.reported)
	}
}

// TestObserveAllSurvivesPanic checks that a panic in ObserveAll becomes an error of the affected cluster only.
func TestObserveAllSurvivesPanic(t *testing.T) {
	for _, method := range []string{"Warnings", "State"} {
		l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "b": worldOf("b")}, bursts: map[string]string{"a": method}}
		rep, err := reconcile.ObserveAll(t.Context(), l)
		if err != nil || len(rep.Clusters) != 2 {
			t.Fatalf("%v: %+v", err, rep)
		}
		for _, c := range rep.Clusters {
			if (c.Key() == "ns/a") != strings.Contains(c.Error, "panic: \"burst in "+method) {
				t.Errorf("%s: %+v", method, c)
			}
		}
	}
}
