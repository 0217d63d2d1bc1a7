package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
	"quorate.dev/quorate/reconcile/steps"
)

// watcher is a hook that records finished phases and lease conflicts.
type watcher struct {
	mu    sync.Mutex
	lines []string
	ended map[string]int
}

func (w *watcher) Phase(name string, took time.Duration) {
	if took < 0 {
		name += " too early"
	}
	w.add(name)
}

func (w *watcher) LeaseConflict() { w.add("conflict") }

func (w *watcher) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended == nil {
		w.ended = map[string]int{}
	}
	w.lines = append(w.lines, line)
	w.ended[line]++
}

// TestPhasesAreReported checks that each phase of a pass is reported when it ends, whether it succeeds, fails or
// panics. An action abandoned because of a lock counts as a lease conflict.
func TestPhasesAreReported(t *testing.T) {
	act := func(err error) func(*live) {
		return func(l *live) {
			l.worlds["a"].Declared.Replicas = 5
			if err != nil {
				l.doing = map[string]error{"a": err}
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*live)
		want   []string
	}{
		"nothing to do":         {func(*live) {}, []string{"list", "observe", "decide", "report"}},
		"an action":             {act(nil), []string{"list", "observe", "decide", "act", "report"}},
		"an action that fails":  {act(errors.New("forbidden")), []string{"list", "observe", "decide", "act", "report"}},
		"a lease that is taken": {act(fmt.Errorf("%w: process 7", reconcile.ErrLocked)), []string{"list", "observe", "decide", "conflict", "act", "report"}},
		"an unobserved cluster": {func(l *live) { l.broken = map[string]error{"a": errors.New("no pods")} }, []string{"list", "observe", "report"}},
		"no API server":         {func(l *live) { l.failing = []error{errors.New("no route")} }, []string{"list"}},
		"a panic":               {func(l *live) { l.bursts = map[string]string{"a": "State"} }, []string{"list", "observe"}},
		"a panic of a report":   {func(l *live) { l.bursts = map[string]string{"a": "Report"} }, []string{"list", "observe", "decide", "report"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := oneCluster()
			r := reconciler(&source{}, l)
			r.UntilConverged(t.Context())
			test.change(l)
			w := &watcher{}
			r.Steps = w
			r.Pass(t.Context())
			if !slices.Equal(w.lines, test.want) {
				t.Errorf("got %q, want %q", w.lines, test.want)
			}
		})
	}
}

// TestAllPhasesOfRunAreReported checks that every phase of every cluster is reported in a run with many clusters, many
// passes and a slow cluster.
func TestAllPhasesOfRunAreReported(t *testing.T) {
	l := &live{worlds: map[string]*simulate.World{}}
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		l.worlds[name] = worldOf(name)
	}
	w := &watcher{}
	r := reconciler(&source{}, l)
	r.Steps, r.ClusterTimeout = w, 50*time.Millisecond
	l.hanging = map[string]func(){"c07": func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Progress = func(rep report.Report, _ time.Duration) {
		if len(rep.Clusters) == 40 && rep.Clusters[0].Decision.Rule == decide.Converged {
			cancel()
		}
	}
	r.UntilConverged(ctx)
	for _, phase := range []string{steps.List, steps.Observe, steps.Decide, steps.Act, steps.Report} {
		if w.ended[phase] == 0 {
			t.Errorf("the phase %s is missing: %v", phase, w.ended)
		}
	}
	if w.ended[steps.Decide] > w.ended[steps.Observe] || w.ended[steps.Act] > w.ended[steps.Decide] || w.ended["conflict"] > 0 {
		t.Errorf("got %v", w.ended)
	}
}
