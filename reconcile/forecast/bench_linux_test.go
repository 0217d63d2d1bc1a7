package forecast_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// mostPlanning is the maximum CPU time for planning a thousand clusters if fifty of them change. It does not include
// the time to observe them.
const mostPlanning = 5 * time.Second

// BenchmarkPlan decides for a thousand clusters, and creates the forecasts of fifty of them, whose size, version or
// options change.
func BenchmarkPlan(b *testing.B) {
	changes := []func(*decide.Declared){
		func(d *decide.Declared) { d.Replicas = 5 },
		func(d *decide.Declared) { d.Version = "3.7.3" },
		func(d *decide.Declared) { d.SpecHash = "h2" },
		func(d *decide.Declared) { d.Replicas = 1 },
		func(d *decide.Declared) { d.Replicas, d.Version, d.SpecHash = 5, "3.7.3", "h2" },
	}
	states := make([]decide.State, 1000)
	for i := range states {
		w, _ := simulate.Settled(fmt.Sprintf("a%d", i), decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"})
		if i < 50 {
			changes[i%len(changes)](&w.Declared)
		}
		states[i] = w.Observe()
	}
	var took time.Duration
	runs := 0
	for b.Loop() {
		began := processorTime(b)
		for i, s := range states {
			d := decide.Decide(s)
			if changed := i < 50; changed != (d.Verdict == decide.Act) {
				b.Fatalf("%d: %s", i, d)
			}
			if d.Verdict != decide.Act {
				continue
			}
			if ahead := forecast.Of(s); len(ahead.Steps) == 0 || ahead.Open || ahead.End.Verdict != decide.Done {
				b.Fatalf("%d: %+v", i, ahead)
			}
		}
		took += processorTime(b) - began
		runs++
	}
	took /= time.Duration(runs)
	fmt.Fprintf(os.Stdout, "figure plan_1000_cpu_seconds %.3g s\n", took.Seconds())
	if took > mostPlanning {
		b.Errorf("it takes %s of processor time, want at most %s", took, mostPlanning)
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
