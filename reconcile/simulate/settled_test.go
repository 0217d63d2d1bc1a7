package simulate_test

import (
	"fmt"
	"reflect"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// smallDeclarations returns declarations of small clusters with each lifecycle, with and without backups. Direct
// upgrades are possible only between some of the versions.
func smallDeclarations() []decide.Declared {
	var list []decide.Declared
	for _, replicas := range []int{1, 3} {
		for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
			for _, lifecycle := range []decide.Lifecycle{decide.Running, decide.Stopped, decide.Deleted} {
				for _, retention := range []decide.Retention{decide.Retain, decide.Delete} {
					if lifecycle != decide.Deleted && retention == decide.Delete {
						continue
					}
					d := decide.Declared{Replicas: replicas, Version: version, Lifecycle: lifecycle, Retention: retention, SpecHash: "h"}
					list = append(list, d)
					d.BacksUp, d.BacksUpBeforeUpgrade, d.BacksUpBeforeDeletion, d.BackupTo = true, true, true, "s3://backups"
					list = append(list, d)
				}
			}
		}
	}
	suspended := decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, Suspended: true, SpecHash: "x"}
	return append(list, suspended)
}

// TestSettled checks that the settled world of every small declaration has converged without violations.
func TestSettled(t *testing.T) {
	for _, d := range smallDeclarations() {
		w, end := simulate.Settled("a", d)
		if end.Verdict != decide.Done {
			t.Errorf("%+v: comes to %s", d, end)
		}
		if d.Lifecycle == decide.Running && !d.Suspended && (end.Rule != decide.Converged || len(w.Observe().Membership.Voters()) != d.Replicas) {
			t.Errorf("%+v: comes to %s with %d voters", d, end, len(w.Observe().Membership.Voters()))
		}
		if violations := w.Violations(); len(violations) > 0 {
			t.Errorf("%+v: %v", d, violations)
		}
		if again, _ := simulate.Settled("a", d); !reflect.DeepEqual(again.Observe(), w.Observe()) {
			t.Errorf("%+v: a different world the second time", d)
		}
		if ahead := forecast.Of(w.Observe()); len(ahead.Steps) > 0 || ahead.End.Rule != end.Rule {
			t.Errorf("%+v: something is left to do: %s", d, ahead.Text(""))
		}
	}
}

// TestSettledRejectsImpossibleCluster checks that a cluster that cannot be bootstrapped is not assumed to exist.
func TestSettledRejectsImpossibleCluster(t *testing.T) {
	if _, end := simulate.Settled("a", decide.Declared{Version: "3.6.16", Lifecycle: decide.Running}); end.Verdict == decide.Done {
		t.Errorf("a cluster without members: %s", end)
	}
}

// TestForecastBetweenDeclarationsEnds checks that the forecast from one small declaration to another ends in Done or
// Block, and that passes execute the predicted actions.
func TestForecastBetweenDeclarationsEnds(t *testing.T) {
	all := smallDeclarations()
	for i, from := range all {
		world, _ := simulate.Settled("a", from)
		for j, to := range all {
			if !taken(i + j) {
				continue
			}
			w := world.Clone()
			w.Declared = to
			ahead := forecast.Of(w.Observe())
			if ahead.Open || ahead.End.Verdict == decide.Act || ahead.End.Message == "" {
				t.Errorf("from %+v\nto %+v: no end: %s %s", from, to, ahead.End, ahead.Text(""))
			}
			if ahead.End.Verdict == decide.Wait {
				t.Errorf("from %+v\nto %+v: waits forever: %s", from, to, ahead.End)
			}
			if (i+j)%7 == 0 {
				t.Run(fmt.Sprint(i, " to ", j), func(t *testing.T) { isTaken(t, w) })
			}
		}
	}
}
