package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// followed is a source whose declarations change when a test sends new ones.
type followed struct {
	source
	next chan reconcile.Desired
}

func (s *followed) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	for {
		select {
		case d := <-s.next:
			known(d)
		case <-ctx.Done():
			known(reconcile.Desired{Unread: context.Cause(ctx)})
			return
		}
	}
}

// revision returns declarations of ns/a, ns/b and so on, each with the given content.
func revision(contents ...string) reconcile.Desired {
	d := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Revision: "main@sha1:1"}}}
	for i, content := range contents {
		c := declared("one", "ns/"+string(rune('a'+i)))
		c.Applied = map[string]any{"spec": content}
		d.Clusters = append(d.Clusters, c)
	}
	return d
}

// events are changes that a test reports while a loop runs.
type events struct {
	woken chan struct{}
	mu    sync.Mutex
	told
}

func newEvents() *events { return &events{woken: make(chan struct{}, 1)} }

func (e *events) Woken() <-chan struct{} { return e.woken }

func (e *events) Take() (map[string]bool, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told.Take()
}

// tell reports a change to a cluster, and whether its declaration may have changed.
func (e *events) tell(cluster string, declaration bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clusters = map[string]bool{cluster: declaration}
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// looping is a loop over simulated clusters, in its own synctest bubble.
type looping struct {
	*testing.T
	*slowLive
	*reconcile.Reconciler
	git    *followed
	events *events
	stop   func()
}

var seldom = reconcile.Intervals{Git: 10 * time.Second, Resync: time.Hour, Etcd: 10 * time.Minute, Lease: 15 * time.Second}

// loop starts a loop over the named clusters, which have already converged unless prepare changes them.
func loop(t *testing.T, often reconcile.Intervals, prepare func(*slowLive), names ...string) *looping {
	l := &looping{T: t, slowLive: slowClusters(names...), git: &followed{next: make(chan reconcile.Desired, 1)}, events: newEvents()}
	reconciler(&source{}, l.slowLive).UntilConverged(t.Context())
	for _, c := range l.clusters {
		c.looked = nil
	}
	if prepare != nil {
		prepare(l.slowLive)
	}
	l.changes = l.events
	l.git.next <- revision(slices.Repeat([]string{"x"}, len(names))...)
	l.Reconciler = reconciler(l.git, l.slowLive)
	stop := start(t, l.Reconciler, often)
	l.stop = func() {
		stop()
		l.end(t)
	}
	synctest.Wait()
	return l
}

// start starts a loop, and returns a function that stops the loop and waits until it has ended.
func start(t *testing.T, r *reconcile.Reconciler, often reconcile.Intervals) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Loop(ctx, often)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// looks returns the intervals between observations of a cluster since the previous call.
func (l *looping) looks(cluster string) []time.Duration {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.clusters[cluster]
	var gaps []time.Duration
	for i := range c.looked[min(1, len(c.looked)):] {
		gaps = append(gaps, c.looked[i+1].Sub(c.looked[i]))
	}
	c.looked = c.looked[max(len(c.looked)-1, 0):]
	return gaps
}

// wantLooks requires the given number of observations of each cluster since the previous call. The numbers are in the
// order of the cluster names.
func (l *looping) wantLooks(when string, want ...int) {
	l.Helper()
	for i, n := range want {
		if name := "ns/" + string(rune('a'+i)); len(l.looks(name)) != n {
			l.Errorf("%s: it did not look %d times at %s", when, n, name)
		}
	}
}

// TestLoopObservesOnlyChangedClusters checks that a loop observes all clusters once, and after that only clusters that
// have changed or whose declarations have changed.
func TestLoopObservesOnlyChangedClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, nil, "ns/a", "ns/b", "ns/c")
		l.wantLooks("at first", 0, 0, 0)
		time.Sleep(time.Minute)
		l.wantLooks("while nothing happens", 0, 0, 0)
		l.events.tell("ns/b", false)
		time.Sleep(time.Second)
		l.wantLooks("after an event", 0, 1, 0)
		l.git.next <- revision("x", "x", "y")
		time.Sleep(time.Second)
		l.wantLooks("after a push", 0, 0, 1)
		l.git.next <- revision("x", "x")
		time.Sleep(time.Second)
		l.wantLooks("after a removal", 0, 0, 1)
		l.git.next <- revision("x", "x", "y")
		time.Sleep(time.Second)
		l.wantLooks("after it is back", 0, 0, 1)
		unread := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Unread: errors.New("no route to host")}}}
		for _, d := range []reconcile.Desired{unread, revision("x", "x", "y")} {
			l.git.next <- d
			time.Sleep(time.Minute)
			l.wantLooks("after an outage of git", 0, 0, 0)
		}
		l.stop()
	})
}

// TestLoopObservesHealthyClustersAtInterval checks that healthy clusters are observed no more often than configured,
// and not all at the same time.
func TestLoopObservesHealthyClustersAtInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 26 {
			names = append(names, "ns/"+string(rune('a'+i)))
		}
		often := seldom
		often.Etcd = 30 * time.Second
		l := loop(t, often, nil, names...)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		at := map[time.Time]int{}
		for _, name := range names {
			for _, when := range l.clusters[name].looked[1:] {
				at[when]++
			}
			gaps := l.looks(name)
			if shortest := slices.Min(gaps); shortest < 30*time.Second || len(gaps) < 10 {
				t.Errorf("%s was looked at %d times, after %s", name, len(gaps), gaps)
			}
		}
		for when, n := range at {
			if n > 20 {
				t.Errorf("%d of 26 were looked at at the same time, at %s", n, when)
			}
		}
		if len(at) > 10*60/7 { // each of these times also requires a list, so there must be few
			t.Errorf("there were %d lists", len(at))
		}
		l.stop()
	})
}

// TestLoopBacksOffFromFailingCluster checks that a failing cluster is observed at increasing intervals even if its
// objects change, but immediately if its declaration changes. It does not delay other clusters.
func TestLoopBacksOffFromFailingCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, func(l *slowLive) { l.clusters["ns/a"].failsAt = 1 }, "ns/a", "ns/b")
		time.Sleep(20 * time.Minute)
		gaps := l.looks("ns/a")
		last := gaps[len(gaps)-1]
		if len(gaps) < 20 || len(gaps) > 40 || gaps[0] > 4*time.Second || last < 40*time.Second || last > 63*time.Second {
			t.Errorf("it was looked at after %s", gaps)
		}
		l.looks("ns/b")
		for range 10 {
			l.events.tell("ns/a", false)
			time.Sleep(time.Second)
		}
		l.events.tell("ns/b", false)
		time.Sleep(time.Second)
		if n := len(l.looks("ns/a")); n > 1 {
			t.Errorf("events caused %d looks", n)
		}
		l.wantLooks("beside one that fails", 0, 1)
		for what, happens := range map[string]func(){
			"its custom resource": func() { l.events.tell("ns/a", true) },
			"git":                 func() { l.git.next <- revision("y", "x") },
		} {
			happens()
			time.Sleep(10 * time.Second)
			if n := len(l.looks("ns/a")); n < 2 {
				t.Errorf("after a change of %s, it was looked at %d times", what, n)
			}
			time.Sleep(10 * time.Minute)
			l.looks("ns/a")
		}
		l.stop()
	})
}

// TestLoopLeavesLockedClusterAlone checks that a loop skips a cluster that another process is acting on, until the
// lease expires or the cluster changes. Only the other process reports on the cluster.
func TestLoopLeavesLockedClusterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *slowCluster
		l := loop(t, seldom, func(l *slowLive) {
			a = l.clusters["ns/a"]
			a.world.LockHolder, a.world.Declared.SpecHash = "process 7 on elsewhere", "h2"
			a.actions, a.sources = nil, nil
		}, "ns/a")
		time.Sleep(5 * time.Minute)
		gaps := l.looks("ns/a")
		if slices.Min(gaps) < 15*time.Second || len(gaps) < 10 || len(a.actions)+len(a.sources) > 0 {
			t.Errorf("looked after %s, did %q, and reported %d times", gaps, a.actions, len(a.sources))
		}
		l.mu.Lock()
		a.world.LockHolder = ""
		l.mu.Unlock()
		time.Sleep(time.Minute)
		l.mu.Lock()
		if len(a.actions) == 0 || len(a.sources) == 0 {
			t.Errorf("after the lease ran out, it did %q and reported %d times", a.actions, len(a.sources))
		}
		l.mu.Unlock()
		l.stop()
	})
}

// TestLoopDoesNotReportOnLockedCluster checks that a loop that cannot observe a cluster, for example because of missing
// permissions or a timeout, does not report on it while another loop is acting on it. Otherwise, the two loops would
// publish contradictory reports in every pass.
func TestLoopDoesNotReportOnLockedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a *slowCluster
		l := loop(t, seldom, func(l *slowLive) {
			a = l.clusters["ns/a"]
			a.world.LockHolder, a.failsAt, a.sources = "process 7 on elsewhere", 1, nil
		}, "ns/a")
		time.Sleep(5 * time.Minute)
		l.mu.Lock()
		if len(a.sources) > 0 {
			t.Errorf("reported %d times", len(a.sources))
		}
		a.world.LockHolder = ""
		l.mu.Unlock()
		time.Sleep(20 * time.Minute)
		l.mu.Lock()
		if len(a.sources) == 0 {
			t.Error("after the lease expired, it did not report")
		}
		l.mu.Unlock()
		l.stop()
	})
}

// TestLoopProcessesPushOnceAncestryIsKnown checks that a push is processed as soon as its ancestry is known, and that
// it does not delay clusters of other sources until then.
func TestLoopProcessesPushOnceAncestryIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, nil, "ns/a", "ns/b")
		l.mu.Lock()
		asked := l.listed
		l.asks = func(n int) string {
			if n <= asked+3 {
				return "one"
			}
			return ""
		}
		l.mu.Unlock()
		start := time.Now()
		l.git.next <- revision("y", "x")
		for len(l.looks("ns/a")) == 0 && time.Since(start) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(start); took < time.Second || took > 10*time.Second {
			t.Errorf("it was processed after %s", took)
		}
		l.wantLooks("of what is as before", 0, 0)
		l.stop()
	})
}

// TestLoopIsAliveAndReadyWhileItProgresses checks that a loop is alive as long as it makes progress. It becomes ready
// after observing all clusters, and remains ready as long as lists succeed.
func TestLoopIsAliveAndReadyWhileItProgresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reconciler(&source{}, oneCluster())
		if r.Ready() {
			t.Error("it is ready before it begins")
		}
		l := loop(t, seldom, nil, "ns/a")
		for range 30 {
			if !l.Alive() || !l.Ready() {
				t.Fatalf("alive %t, ready %t", l.Alive(), l.Ready())
			}
			time.Sleep(time.Minute)
		}
		l.mu.Lock()
		l.lists = func() time.Duration { return 10 * time.Minute }
		l.mu.Unlock()
		l.events.tell("ns/a", false)
		time.Sleep(6 * time.Minute)
		if l.Alive() {
			t.Error("it is alive without progress")
		}
		l.stop()
	})
}

// TestStoppedLoopFinishesAction checks that a loop that is stopped during an action finishes the action before it
// exits.
func TestStoppedLoopFinishesAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, func(l *slowLive) {
			l.clusters["ns/a"].acts, l.clusters["ns/a"].world.Declared.SpecHash = time.Second, "h2"
		}, "ns/a")
		l.stop() // slowLive records anything that happens after this
		if l.clusters["ns/a"].acting {
			t.Error("the action is still under way")
		}
	})
}

// passing is a Live whose clusters and removals are short-lived: each list contains different ones.
type passing struct {
	lists int
	heap  map[int]uint64
	stop  func()
}

func (p *passing) Observe(_ context.Context, desired reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	p.lists++
	if _, measured := p.heap[p.lists]; measured {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.heap[p.lists] = m.HeapAlloc
	}
	if p.lists > 10_000 {
		p.stop()
	}
	var clusters []reconcile.Cluster
	for i := range 5 {
		clusters = append(clusters, &brief{fails: i%2 == 0, name: fmt.Sprintf("%s-%d-%d", strings.Repeat("x", 200), p.lists, i)})
	}
	removals := []report.Removal{removalOf(fmt.Sprintf("%s-%d", strings.Repeat("x", 200), p.lists), "main@sha1:1", "ns/x")}
	return reconcile.Observed{Desired: desired, Clusters: clusters, Removals: removals}, nil
}

func (p *passing) Changes(context.Context) reconcile.Changes { return always{} }
func (p *passing) Close(context.Context) error               { return nil }

// brief is a cluster that appears in only one list.
type brief struct {
	fleetCluster
	name  string
	fails bool
}

func (c *brief) Identity() (string, string) { return "ns", c.name }

func (c *brief) State(context.Context) (decide.State, error) {
	if c.fails {
		return decide.State{}, fmt.Errorf("nobody knows %s", c.name)
	}
	return simulate.New("a", decide.Declared{Replicas: 3, Lifecycle: "Running", Suspended: true}, 0).Observe(), nil
}

func (c *brief) Do(context.Context, decide.Action) (report.Outcome, error) {
	return report.Outcome{Changed: true}, nil
}

// TestLoopMemoryDoesNotGrow checks that ten thousand passes use no more memory than a thousand, even if clusters are
// constantly created and deleted, and removals are held.
func TestLoopMemoryDoesNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &passing{heap: map[int]uint64{1000: 0, 10_000: 0}, stop: cancel}
		r := &reconcile.Reconciler{Source: &source{}, Live: p, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		r.Loop(ctx, seldom)
		if first, last := p.heap[1000], p.heap[10_000]; last > first+1<<20 {
			t.Errorf("the heap grew from %d to %d bytes", first, last)
		}
		time.Sleep(time.Minute)
	})
}
