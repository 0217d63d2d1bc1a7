package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestUnreadSourceCausesFewFullPasses checks that a constantly changing cluster is observed individually while another
// source is still being read or its ancestry is not known yet. Changes to clusters that wait for that source do not
// cause full passes.
func TestUnreadSourceCausesFewFullPasses(t *testing.T) {
	unread := fmt.Errorf("read two: %w", reconcile.ErrReading)
	for name, test := range map[string]struct {
		two    error
		asks   func(int) string
		passes int // maximum number of full passes
	}{
		"being read": {unread, nil, 5},
		"asked for":  {nil, func(int) string { return "two" }, 8},
	} {
		for mode, run := range map[string]func(*reconcile.Reconciler, context.Context){
			"until converged": func(r *reconcile.Reconciler, ctx context.Context) { r.UntilConverged(ctx) },
			"loop":            func(r *reconcile.Reconciler, ctx context.Context) { r.Loop(ctx, seldom) },
		} {
			t.Run(name+" "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := waitingClusters(10)
					l.clusters["other/b"] = &slowCluster{name: "other/b", world: worldOf("b")}
					moving := restless{make(chan struct{}), map[string]bool{"ns/c1": false, "other/b": false}}
					l.changes, l.asks = moving, test.asks
					desired := tenants(nil, test.two)
					for n := range 10 {
						if n != 1 {
							l.clusters[fmt.Sprintf("ns/c%d", n)].world.LockHolder = ""
						}
						desired.Clusters = append(desired.Clusters, declared("one", fmt.Sprintf("ns/c%d", n)))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					go moving.wake(ctx)
					r, passes := reconciler(&source{desired: desired}, l), 0
					r.Progress = func(rep report.Report, _ time.Duration) {
						if len(rep.Clusters) == 10 {
							passes++
						}
						if l.listed > 1000 {
							t.Fatal("it never rests")
						}
					}
					run(r, ctx)
					c1, b := l.clusters["ns/c1"].look, l.clusters["other/b"].look
					if c1 < 100 || b > 0 || passes > test.passes {
						t.Errorf("looked %d times at what changes, %d at what waits to be declared, and %d at all", c1, b, passes)
					}
					l.end(t)
				})
			})
		}
	}
}

// asking is a Live that does not know yet whether the revisions of some sources descend from the revisions applied
// before.
type asking struct {
	*slowLive
	about func() []string
}

func (a asking) Observe(
	ctx context.Context, d reconcile.Desired, wanted func(string) bool,
) (reconcile.Observed, error) {
	for _, name := range a.about() {
		if p, given := d.State(name); given && p.Unread == nil {
			d = d.Refused(name, fmt.Errorf("look in the history: %w", reconcile.ErrReading))
		}
	}
	return a.slowLive.Observe(ctx, d, wanted)
}

// setAsks makes the ancestry of the named source unknown from now on. If the name is empty, all ancestry is known.
func (l *slowLive) setAsks(about string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks = func(int) string { return about }
}

// TestDeclarationDuringAncestryCheckIsProcessed checks that a declaration that changes while its cluster is being
// observed and the ancestry of its source is unknown is processed as soon as the observation ends.
func TestDeclarationDuringAncestryCheckIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, func(l *slowLive) { l.clusters["ns/a"].looks = 20 * time.Second }, "ns/a", "ns/b")
		time.Sleep(3 * time.Second)
		l.setAsks("one")
		l.git.next <- revision("y", "x")
		time.Sleep(time.Second)
		l.events.mu.Lock()
		l.events.all = true
		l.events.mu.Unlock()
		l.events.tell("ns/b", false)
		time.Sleep(200 * time.Millisecond)
		l.setAsks("")
		time.Sleep(time.Minute)
		if looks := len(l.looks("ns/a")); looks != 1 {
			t.Errorf("looked %d times", looks)
		}
		l.stop()
	})
}

// TestSlowReadDoesNotDelayAncestryChecks checks that a slow read of one source does not delay the ancestry checks of
// other sources.
func TestSlowReadDoesNotDelayAncestryChecks(t *testing.T) {
	for mode, run := range map[string]func(*reconcile.Reconciler, context.Context){
		"pass":            func(r *reconcile.Reconciler, ctx context.Context) { r.Pass(ctx) },
		"until converged": func(r *reconcile.Reconciler, ctx context.Context) { r.UntilConverged(ctx) },
		"loop":            func(r *reconcile.Reconciler, ctx context.Context) { r.Loop(ctx, seldom) },
	} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slowClusters("ns/a", "other/b")
				l.asks = func(n int) string { return map[bool]string{true: "one"}[n == 1] }
				l.lists = func() time.Duration { return 2 * time.Second }
				s := later{tenants(nil, fmt.Errorf("read two: %w", reconcile.ErrReading)), tenants(nil, nil), 10 * time.Minute}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
				defer cancel()
				start := time.Now()
				run(reconciler(s, l), ctx)
				if first := l.clusters["ns/a"].looked[0].Sub(start); first > 10*time.Second {
					t.Errorf("first looked at after %s", first)
				}
				l.end(t)
			})
		})
	}
}

// TestAncestryIsCheckedAgainSoon checks that unknown ancestry is checked again soon, whether or not other changes
// occur.
func TestAncestryIsCheckedAgainSoon(t *testing.T) {
	for mode, run := range map[string]func(*reconcile.Reconciler, context.Context){
		"pass":            func(r *reconcile.Reconciler, ctx context.Context) { r.Pass(ctx) },
		"plan":            func(r *reconcile.Reconciler, ctx context.Context) { r.Plan = true; r.Pass(ctx) },
		"until converged": func(r *reconcile.Reconciler, ctx context.Context) { r.UntilConverged(ctx) },
		"loop":            func(r *reconcile.Reconciler, ctx context.Context) { r.Loop(ctx, seldom) },
	} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slowClusters("ns/a", "other/b")
				reconciler(&source{}, l).UntilConverged(t.Context())
				l.clusters["ns/a"].world.LockHolder = "process 7 on elsewhere"
				l.clusters["other/b"].looked = nil
				start := time.Now()
				l.asks = func(int) string { return map[bool]string{true: "two"}[time.Since(start) < 1200*time.Millisecond] }
				moving := restless{make(chan struct{}), map[string]bool{"ns/a": false}}
				l.changes = moving
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				go moving.wake(ctx)
				run(reconciler(&source{desired: tenants(nil, nil)}, l), ctx)
				if first := l.clusters["other/b"].looked[0].Sub(start); first > 1600*time.Millisecond {
					t.Errorf("known after 1.2 s, and looked at after %s", first)
				}
				l.end(t)
			})
		})
	}
}

// TestPassListsSeldomDuringAncestryCheck checks that other changes do not make a single pass list more often while it
// is waiting for the ancestry of a source.
func TestPassListsSeldomDuringAncestryCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "other/b")
		reconciler(&source{}, l).UntilConverged(t.Context())
		start := time.Now()
		l.listed = 0
		l.asks = func(int) string { return map[bool]string{true: "two"}[time.Since(start) < time.Minute] }
		moving := restless{make(chan struct{}), map[string]bool{"ns/a": false}}
		l.changes = moving
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		go moving.wake(ctx)
		reconciler(&source{desired: tenants(nil, nil)}, l).Pass(ctx)
		if l.listed > 40 {
			t.Errorf("%d lists", l.listed)
		}
		l.end(t)
	})
}

// unable is a Live whose nth list fails with the given error.
type unable struct {
	asking
	why    error
	nth, n int
}

func (u *unable) Observe(
	ctx context.Context, d reconcile.Desired, wanted func(string) bool,
) (reconcile.Observed, error) {
	if u.n++; u.n == u.nth {
		return reconcile.Observed{}, u.why
	}
	return u.asking.Observe(ctx, d, wanted)
}

// TestLoopIsNotReadyBeforeFirstObservation checks that a loop that has not observed anything is not ready, even if no
// source was being read when its list failed.
func TestLoopIsNotReadyBeforeFirstObservation(t *testing.T) {
	for nth := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l := slowClusters("ns/a", "other/b")
			r := reconciler(&source{desired: tenants(nil, nil)}, &unable{
				asking: asking{l, func() []string { return []string{"one", "two"} }},
				why:    reconcile.SetupError{Err: errors.New("forbidden")}, nth: nth + 1})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(25*time.Second, func() { // before the ancestry check times out
				if r.Ready() {
					t.Errorf("it is ready after the list of number %d failed", nth+1)
				}
			})
			r.Loop(ctx, seldom)
		})
	}
}

// TestFailedListDoesNotEndAncestryCheck checks that a transient list failure does not end a single pass that is waiting
// for the ancestry of a source.
func TestFailedListDoesNotEndAncestryCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "other/b")
		reconciler(&source{}, l).UntilConverged(t.Context())
		l.clusters["other/b"].look = 0
		start := time.Now()
		about := func() []string {
			if time.Since(start) < 10*time.Second {
				return []string{"two"}
			}
			return nil
		}
		rep := reconciler(&source{desired: tenants(nil, nil)}, &unable{asking: asking{l, about}, why: errors.New("timeout"),
			nth: 3}).Pass(t.Context())
		if l.clusters["other/b"].look == 0 {
			t.Errorf("ended after %s: %q, %d clusters", time.Since(start), rep.Error, len(rep.Clusters))
		}
		l.end(t)
	})
}

// staged provides three sources, each of which is read or fails after its own delay.
type staged struct {
	at    map[string]time.Duration
	fails string
}

func (s staged) after(since time.Duration) reconcile.Desired {
	var d reconcile.Desired
	for _, place := range [][]string{{"one", "ns/a", "ns/b"}, {"two", "other/c"}, {"three", "third/d"}} {
		name, clusters := place[0], place[1:]
		namespace, _, _ := strings.Cut(clusters[0], "/")
		p := reconcile.SourceState{Name: name, Revision: "main@sha1:1", Namespaces: reconcile.Namespaces{namespace}}
		switch {
		case since < s.at[name]:
			p.Unread = fmt.Errorf("read %s: %w", name, reconcile.ErrReading)
		case s.fails == name:
			p.Unread = errors.New("no route to host")
		default:
			for _, c := range clusters {
				d.Clusters = append(d.Clusters, declared(name, c))
			}
		}
		d.Sources = append(d.Sources, p)
	}
	d.Summarize()
	return d
}

func (s staged) Fetch(ctx context.Context, early func(reconcile.Desired)) reconcile.Desired {
	for start := time.Now(); ; {
		d := s.after(time.Since(start))
		if !errors.Is(d.Failure(), reconcile.ErrReading) || ctx.Err() != nil {
			return d
		}
		early(d)
		time.Sleep(time.Second)
	}
}

func (s staged) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(s.Fetch(ctx, known))
}

// TestRunConvergesWithRandomSourceTiming checks that a run converges, with all clusters bootstrapped and a limited
// number of lists, if sources become readable, fail or have their ancestry determined at random times, and clusters are
// slow at random.
func TestRunConvergesWithRandomSourceTiming(t *testing.T) {
	for seed := range timings(40, 100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
			l := slowClusters("ns/a", "ns/b", "other/c", "third/d")
			for _, c := range l.clusters {
				c.looks = upTo(6*time.Second) * time.Duration(random.IntN(2))
				c.acts = upTo(6*time.Second) * time.Duration(random.IntN(2))
			}
			start, s := time.Now(), staged{at: map[string]time.Duration{}}
			from, until := map[string]time.Duration{}, map[string]time.Duration{}
			for _, name := range []string{"one", "two", "three"} {
				s.at[name] = upTo(40*time.Second) * time.Duration(random.IntN(2))
				from[name] = upTo(30*time.Second) * time.Duration(random.IntN(2))
				until[name] = from[name] + upTo(40*time.Second)*time.Duration(random.IntN(2))
			}
			if random.IntN(3) == 0 {
				s.fails = "three"
			}
			about := func() (list []string) {
				for _, name := range []string{"one", "two", "three"} {
					if since := time.Since(start); since >= from[name] && since < until[name] {
						list = append(list, name)
					}
				}
				return list
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if random.IntN(2) == 0 {
				moving := restless{make(chan struct{}), map[string]bool{"ns/a": false, "third/d": random.IntN(2) == 0}}
				l.changes = moving
				go moving.wake(ctx)
			}
			rep, converged := reconciler(s, asking{l, about}).UntilConverged(ctx)
			cancel()
			if !converged || len(rep.Clusters) != 4 || l.listed > 3000 {
				t.Errorf("seed %d: converged %t, of %d clusters, with %d lists", seed, converged, len(rep.Clusters), l.listed)
			}
			for name, c := range l.clusters {
				if c.formedAt.IsZero() {
					t.Errorf("seed %d: %s is not founded", seed, name)
				}
			}
			l.end(t)
		})
	}
}
