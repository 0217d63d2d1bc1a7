package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
	"quorate.dev/quorate/reconcile/steps"
)

// watcher is a hook that records each step as it ends, with its parent steps.
type watcher struct {
	mu    sync.Mutex
	open  int
	lines []string
	ended map[steps.Kind]int
}

type path struct{}

func (w *watcher) Begin(ctx context.Context, s steps.Step) (context.Context, func(steps.End)) {
	name := string(s.Kind)
	switch s.Kind {
	case steps.Phase, steps.Action:
		name = s.Name
	case steps.Cluster:
		name = s.Cluster
	case steps.Run, steps.Pass:
	}
	if in, is := ctx.Value(path{}).(string); is {
		name = in + "/" + name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	ended := false
	return context.WithValue(ctx, path{}, name), func(e steps.End) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open--
		if ended {
			name += " TWICE"
		}
		ended = true
		w.lines = append(w.lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, e.Outcome, e.Rule, e.Error)))
		if w.ended == nil {
			w.ended = map[steps.Kind]int{}
		}
		w.ended[s.Kind]++
	}
}

// Each step of a pass is reported when it ends, whatever its outcome, and none remains open.
func TestSteps(t *testing.T) {
	const listed, observed, decided = "pass/list ok", "pass/a/observe ok", "pass/a/decide ok"
	for name, test := range map[string]struct {
		change func(*live)
		want   []string
	}{
		"nothing to do": {func(*live) {}, []string{listed, observed, decided, "pass/a/report ok", "pass/a ok Converged", "pass ok"}},
		"an action": {func(l *live) { l.worlds["a"].Declared.Replicas = 5 },
			[]string{listed, observed, decided, "pass/a/act/ApplyObjects ok", "pass/a/act ok", "pass/a/report ok", "pass/a ok ApplyObjects", "pass ok"}},
		"an action that fails": {func(l *live) {
			l.worlds["a"].Declared.Replicas, l.doing = 5, map[string]error{"a": errors.New("forbidden")}
		}, []string{listed, observed, decided, "pass/a/act/ApplyObjects error  forbidden", "pass/a/act error  forbidden", "pass/a/report ok",
			"pass/a error ApplyObjects ApplyObjects: forbidden", "pass error"}},
		"a lease that is taken": {func(l *live) {
			l.worlds["a"].Declared.Replicas, l.doing = 5, map[string]error{"a": fmt.Errorf("%w: process 7", reconcile.ErrLocked)}
		}, []string{listed, observed, decided, "pass/a/act/ApplyObjects locked", "pass/a/act locked", "pass/a/report ok", "pass/a locked LockedElsewhere", "pass locked"}},
		"a cluster that cannot be observed": {func(l *live) { l.broken = map[string]error{"a": errors.New("no pods")} },
			[]string{listed, "pass/a/observe error  no pods", "pass/a/report ok", "pass/a error  no pods", "pass error"}},
		"no API server": {func(l *live) { l.failing = []error{errors.New("no route")} }, []string{"pass/list error  no route", "pass error  no route"}},
		"a panic": {func(l *live) { l.bursts = map[string]string{"a": "State"} },
			[]string{listed, "pass/a/observe error  it panicked", "pass/a error  it panicked", "pass error"}},
		"a panic of a report": {func(l *live) { l.bursts = map[string]string{"a": "Report"} },
			[]string{listed, observed, decided, `pass/a/report error  panic: "burst in Report"; this is a defect of Quorate, please report it`,
				`pass/a error Converged panic: "burst in Report"; this is a defect of Quorate, please report it`, "pass error"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := oneCluster()
			r := reconciler(&source{}, l)
			r.UntilConverged(t.Context())
			test.change(l)
			w := &watcher{}
			r.Steps = w
			r.Pass(t.Context())
			if w.open != 0 || !slices.Equal(w.lines, test.want) {
				t.Errorf("%d are open; got %q, want %q", w.open, w.lines, test.want)
			}
		})
	}
}

// An action that changes nothing is reported as such.
func TestStepsInVain(t *testing.T) {
	l := oneCluster()
	r := reconciler(&source{}, l)
	r.UntilConverged(t.Context())
	l.worlds["a"].Declared.SpecHash = "h2"
	l.worlds["a"].RefuseTransfer(true)
	w := &watcher{}
	r.Steps = w
	for range 100 {
		if r.Pass(t.Context()); slices.Contains(w.lines, "pass/a/act/MoveLeader unchanged") {
			return
		}
	}
	t.Errorf("got %q", w.lines)
}

// With many clusters, many passes and some slow clusters, each step that has begun ends exactly once.
func TestStepsOfARun(t *testing.T) {
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
	if w.open != 0 || strings.Contains(strings.Join(w.lines, "\n"), "TWICE") {
		t.Errorf("%d are open; %q", w.open, w.lines)
	}
	for _, kind := range []steps.Kind{steps.Pass, steps.Cluster, steps.Phase, steps.Action} {
		if w.ended[kind] == 0 {
			t.Errorf("no step is a %s", kind)
		}
	}
}
