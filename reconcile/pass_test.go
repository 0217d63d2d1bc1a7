package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// source is a Source with fixed declarations.
type source struct {
	desired reconcile.Desired
	err     error
	fetches int
}

func (s *source) Fetch(context.Context, func(reconcile.Desired)) reconcile.Desired {
	s.fetches++
	s.desired.Unread = s.err
	return s.desired
}

func (s *source) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(s.Fetch(ctx, known))
}

// live implements Live with simulated worlds. Each observation advances a world's time by one tick.
type live struct {
	worlds  map[string]*simulate.World
	broken  map[string]error  // errors from observing a cluster, by name
	doing   map[string]error  // errors from acting on a cluster, by name
	bursts  map[string]string // the method that panics, by cluster name
	hanging map[string]func() // functions called when the observation of a cluster hangs, by name
	failing []error           // errors from Observe, one per pass
	waited  []decide.Waited   // recorded in the status of each cluster

	telling func(report.Cluster) // called when a cluster is reported

	fetched  []bool
	done     []string
	reported []report.Cluster
	sources  []reconcile.SourceStatus
}

func (l *live) Observe(_ context.Context, desired reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	l.fetched = append(l.fetched, desired.Unread == nil)
	if len(l.failing) > 0 {
		err := l.failing[0]
		l.failing = l.failing[1:]
		if err != nil {
			return reconcile.Observed{}, err
		}
	}
	var clusters []reconcile.Cluster
	for name, world := range l.worlds {
		world.Tick()
		clusters = append(clusters, &simulated{live: l, name: name, world: world})
	}
	return reconcile.Observed{Desired: desired, Clusters: clusters}, nil
}

func (l *live) Changes(context.Context) reconcile.Changes { return always{} }

// always constantly reports that any cluster may have changed.
type always struct{}

func (always) Woken() <-chan struct{} {
	woken := make(chan struct{})
	close(woken)
	return woken
}

func (always) Take() (map[string]bool, bool) { return nil, true }

func (l *live) Close(context.Context) error { return nil }

// simulated is a cluster in a simulated world. Clusters are reported concurrently, so tests that use reports have only
// one cluster.
type simulated struct {
	live  *live
	name  string
	world *simulate.World
}

func (c *simulated) Identity() (string, string) {
	if namespace, name, other := strings.Cut(c.name, "/"); other {
		return namespace, name
	}
	return "ns", c.name
}

func (c *simulated) Warnings() []string {
	c.burst("Warnings")
	return nil
}

// burst panics if the test requests a panic in the given method.
func (c *simulated) burst(method string) {
	if c.live.bursts[c.name] == method {
		panic("burst in " + method)
	}
}

func (c *simulated) Custom() *v1alpha1.EtcdCluster { return nil }

func (c *simulated) Changes(decide.Action) ([]report.Change, error) { return nil, nil }
func (c *simulated) Leave(bool)                                     {}

func (c *simulated) Unwell() bool { return false }

func (c *simulated) DeclaredBy() string { return "" }

func (c *simulated) State(ctx context.Context) (decide.State, error) {
	c.burst("State")
	if began := c.live.hanging[c.name]; began != nil {
		began()
		<-ctx.Done()
		return decide.State{}, context.Cause(ctx)
	}
	s := c.world.Observe()
	s.Waited = c.live.waited
	return s, c.live.broken[c.name]
}

func (c *simulated) Do(_ context.Context, action decide.Action) (report.Outcome, error) {
	c.burst("Do")
	if err := c.live.doing[c.name]; err != nil {
		return report.Outcome{}, err
	}
	writes := c.world.Do(action, simulate.NoCrash)
	if len(c.live.worlds) == 1 {
		c.live.done = append(c.live.done, action.String())
	}
	return report.Outcome{Changed: len(writes) > 0, Detail: strings.Join(writes, ", ")}, nil
}

func (c *simulated) Report(ctx context.Context, entry report.Cluster, source reconcile.SourceStatus) ([]report.News, error) {
	c.burst("Report")
	if c.live.telling != nil {
		c.live.telling(entry)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(c.live.worlds) == 1 {
		c.live.reported = append(c.live.reported, entry)
		c.live.sources = append(c.live.sources, source)
	}
	return nil, nil
}

func worldOf(name string) *simulate.World {
	return simulate.New(name, decide.Declared{Replicas: 3, Version: "3.6.16", SpecHash: "h", Lifecycle: "Running"}, 0)
}

func oneCluster() *live { return &live{worlds: map[string]*simulate.World{"a": worldOf("a")}} }

func reconciler(s reconcile.Source, l reconcile.Live) *reconcile.Reconciler {
	return &reconcile.Reconciler{Source: s, Live: l, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func TestPassDoesOneAction(t *testing.T) {
	l, s := oneCluster(), &source{desired: reconcile.Desired{Revision: "main@sha1:1", Sources: []reconcile.SourceState{{Name: "fleet", Revision: "main@sha1:1"}}}}
	reconciler(s, l).UntilConverged(t.Context())
	l.worlds["a"].Declared.Replicas = 5
	l.done, l.reported, l.sources = nil, nil, nil
	rep := reconciler(s, l).Pass(t.Context())
	if len(l.done) != 1 || rep.Revision != "main@sha1:1" || len(rep.Clusters) != 1 {
		t.Fatalf("did %q, reported %+v", l.done, rep)
	}
	c := rep.Clusters[0]
	if c.Decision.Verdict != decide.Act || c.Outcome == nil || !c.Outcome.Changed || c.Error != "" {
		t.Errorf("got %+v", c)
	}
	if len(l.reported) != 1 || l.sources[0].Revision != "main@sha1:1" {
		t.Errorf("reported %+v of %+v", l.reported, l.sources)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	l := oneCluster()
	r := reconciler(&source{}, l)
	r.Plan = true
	rep := r.Pass(t.Context())
	if len(l.done) != 0 || len(l.reported) != 0 || rep.Clusters[0].Decision.Rule != "Bootstrap" || !rep.Planned {
		t.Errorf("did %q, reported %+v, got %+v", l.done, l.reported, rep)
	}
}

func TestFailureDoesNotBlockOtherClusters(t *testing.T) {
	l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "b": worldOf("b"), "c": worldOf("c")},
		broken: map[string]error{"a": errors.New("list pods: forbidden")}, doing: map[string]error{"b": errors.New("apply Service b: forbidden")}}
	rep := reconciler(&source{}, l).Pass(t.Context())
	var got []string
	for _, c := range rep.Clusters {
		got = append(got, fmt.Sprintf("%s %s %v %s", c.Name, c.Decision.Rule, c.Outcome != nil, c.Error))
	}
	want := []string{"a  false list pods: forbidden", "b Bootstrap false Bootstrap: apply Service b: forbidden", "c Converged true "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnreadableSourceIsReported(t *testing.T) {
	l := oneCluster()
	rep := reconciler(&source{err: errors.New("fetch main: connection refused")}, l).Pass(t.Context())
	if rep.Error != "fetch main: connection refused" || l.fetched[0] || l.sources[0].Error != rep.Error {
		t.Errorf("got %+v, fetched %v, reported %+v", rep, l.fetched, l.sources)
	}
}

func TestLockTakenDuringPassMeansWait(t *testing.T) {
	l := oneCluster()
	l.doing = map[string]error{"a": fmt.Errorf("%w: process 7 on elsewhere", reconcile.ErrLocked)}
	rep := reconciler(&source{}, l).Pass(t.Context())
	c := rep.Clusters[0]
	if c.Decision.Rule != "LockedElsewhere" || c.Decision.Verdict != decide.Wait || c.Error != "" || !strings.Contains(c.Decision.Message, "process 7 on elsewhere") {
		t.Errorf("got %+v", c)
	}
}

func TestUntilConverged(t *testing.T) {
	l, s := oneCluster(), &source{}
	rep, converged := reconciler(s, l).UntilConverged(t.Context())
	c := rep.Clusters[0]
	if !converged || c.Decision.Rule != decide.Converged {
		t.Fatalf("converged %v, got %+v", converged, c)
	}
	if s.fetches != 1 {
		t.Errorf("fetched %d times; a run is about one revision", s.fetches)
	}
	if c.Outcome == nil || !c.Outcome.Changed {
		t.Error("the report does not contain the change")
	}
	if violations := l.worlds["a"].Violations(); len(violations) > 0 {
		t.Error(violations)
	}
	before := len(l.done)
	if _, converged := reconciler(s, l).UntilConverged(t.Context()); !converged || len(l.done) != before {
		t.Errorf("a second run did %q", l.done[before:])
	}
}

func TestUntilConvergedStopsWhenBlocked(t *testing.T) {
	l := oneCluster()
	l.worlds["a"].Occupy("Service a")
	rep, converged := reconciler(&source{}, l).UntilConverged(t.Context())
	if !converged || rep.Clusters[0].Decision.Verdict != decide.Block {
		t.Errorf("converged %v, got %+v", converged, rep.Clusters[0])
	}
}

// TestIneffectiveActionIsRepeatedAndBlocks checks that an action without effect is still repeated after a long time,
// and that the report then says that manual action is required.
func TestIneffectiveActionIsRepeatedAndBlocks(t *testing.T) {
	l := oneCluster()
	r := reconciler(&source{}, l)
	r.UntilConverged(t.Context())
	world := l.worlds["a"]
	world.Declared.SpecHash = "h2"
	world.RefuseTransfer(true)
	for !strings.HasPrefix(l.done[len(l.done)-1], "MoveLeader") {
		r.Pass(t.Context())
	}
	if c := r.Pass(t.Context()).Clusters[0]; c.Decision.Verdict != decide.Act || c.Outcome.Changed {
		t.Fatalf("got %+v", c)
	}
	l.waited = decide.Waits(world.Observe(), decide.Decide(world.Observe()), false)
	for range 4 {
		for range 9 * time.Minute / simulate.TickLength {
			world.Tick()
		}
		s := world.Observe()
		s.Waited = l.waited
		l.waited = decide.Waits(s, decide.Decide(s), false)
	}
	before := len(l.done)
	rep, ended := r.UntilConverged(t.Context())
	c := rep.Clusters[0]
	if !ended || c.Decision.Verdict != decide.Block || c.Decision.Rule != "RollOneMember" || c.Outcome == nil || len(l.done) != before+1 {
		t.Errorf("did %q, ended %t: %+v", l.done[before:], ended, c)
	}
}

func TestUntilConvergedEndsAtDeadline(t *testing.T) {
	l := oneCluster()
	l.worlds["a"].Unpullable = "3.6.16"
	l.worlds["a"].LockHolder = "process 7 on elsewhere"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	rep, converged := reconciler(&source{}, l).UntilConverged(ctx)
	if converged || rep.Clusters[0].Decision.Rule != "LockedElsewhere" {
		t.Errorf("converged %v, got %+v", converged, rep.Clusters[0])
	}
}

func TestUntilConvergedRetriesFailedLists(t *testing.T) {
	l := oneCluster()
	l.failing = []error{errors.New("list Pods: timeout"), nil, errors.New("list Pods: timeout")}
	rep, converged := reconciler(&source{}, l).UntilConverged(t.Context())
	if !converged || rep.Error != "" || rep.Clusters[0].Decision.Rule != decide.Converged {
		t.Errorf("converged %v, got %+v", converged, rep)
	}
}

func TestUntilConvergedEndsIfSetupIsMissing(t *testing.T) {
	l := oneCluster()
	l.failing = []error{reconcile.SetupError{Err: errors.New("no such kind")}}
	rep, _ := reconciler(&source{}, l).UntilConverged(t.Context())
	if rep.Error != "no such kind" || len(l.fetched) != 1 {
		t.Errorf("got %+v after %d passes", rep, len(l.fetched))
	}
}

// TestReportNamesDeclarationFile checks that a report contains the file position of each cluster's declaration.
func TestReportNamesDeclarationFile(t *testing.T) {
	var d reconcile.Declaration
	d.Cluster.Namespace, d.Cluster.Name, d.Where = "ns", "a", report.Problem{File: "clusters/a.yaml", Line: 3}
	declared := decide.Declared{Replicas: 1, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}
	worlds := map[string]*simulate.World{"a": simulate.New("a", declared, 0), "b": simulate.New("b", declared, 0)}
	r := reconciler(&source{desired: reconcile.Desired{Clusters: []reconcile.Declaration{d}}}, &live{worlds: worlds})
	r.Plan = true
	rep := r.Pass(t.Context())
	if len(rep.Clusters) != 2 || rep.Clusters[0].Where != d.Where || rep.Clusters[1].Where.File != "" {
		t.Errorf("they are declared at %+v", rep.Clusters)
	}
}
