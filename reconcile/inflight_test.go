package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestRunEndsDespiteSlowObservations checks that a run ends when nothing is left to do or manual action is required,
// even if observing its clusters takes longer than a turn and the observations overlap.
func TestRunEndsDespiteSlowObservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/b", "ns/c")
		if _, converged := reconciler(&source{}, l).UntilConverged(t.Context()); !converged {
			t.Fatal("not converged")
		}
		l.clusters["ns/a"].looks, l.clusters["ns/b"].looks = 3*time.Second, 7*time.Second
		l.clusters["ns/b"].world.Occupy("Service b")
		l.clusters["ns/b"].world.Declared.SpecHash = "h2"
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start := time.Now()
		rep, converged := reconciler(&source{}, l).UntilConverged(ctx)
		if took := time.Since(start); !converged || took > 30*time.Second || len(rep.Clusters) != 3 {
			t.Errorf("converged %t after %s: %+v", converged, took, rep.Clusters)
		}
		l.end(t)
	})
}

// TestSlowConvergedClusterIsObservedSeldom checks that a slow cluster with nothing left to do is observed only in full
// passes, not repeatedly while a run waits for another cluster.
func TestSlowConvergedClusterIsObservedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/slow", "ns/waits")
		reconciler(&source{}, l).UntilConverged(t.Context())
		slow, waits := l.clusters["ns/slow"], l.clusters["ns/waits"]
		slow.look, slow.looks = 0, 2100*time.Millisecond
		waits.world.LockHolder, waits.world.Declared.SpecHash = "process 7 on elsewhere", "h2"
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		reconciler(&source{}, l).UntilConverged(ctx)
		if slow.look > 1+60/5 { // a full pass every five seconds
			t.Errorf("it looked at it %d times in a minute", slow.look)
		}
		l.end(t)
	})
}

// TestChangeDuringObservationRequeues checks that a cluster that changes while it is being observed is observed again,
// even if no pass waits for it.
func TestChangeDuringObservationRequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/slow", "ns/waits")
		reconciler(&source{}, l).UntilConverged(t.Context())
		slow, waits := l.clusters["ns/slow"], l.clusters["ns/waits"]
		slow.look, slow.looks, l.changes = 0, 2100*time.Millisecond, newEvents()
		waits.world.LockHolder, waits.world.Declared.SpecHash = "process 7 on elsewhere", "h2"
		time.AfterFunc(time.Second, func() { l.changes.(*events).tell("ns/slow", false) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		reconciler(&source{}, l).UntilConverged(ctx)
		if slow.look != 2 {
			t.Errorf("it looked at it %d times", slow.look)
		}
		l.end(t)
	})
}

// TestChangeDuringFirstObservationRequeues checks the same for a cluster that is new to a loop, after the loop has
// observed all other clusters.
func TestChangeDuringFirstObservationRequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, func(l *slowLive) { l.clusters["ns/a"].looks = 20 * time.Second }, "ns/a", "ns/b")
		time.Sleep(3 * time.Second)
		l.events.tell("ns/a", false)
		time.Sleep(time.Second)
		l.events.mu.Lock()
		l.events.all = true
		l.events.mu.Unlock()
		l.events.tell("ns/b", false)
		time.Sleep(time.Minute)
		l.wantLooks("after a change", 1, 1)
		l.stop()
	})
}

// TestSlowBootstrapIsSealedSoon checks that a cluster being bootstrapped is sealed soon, even if it is slow and the run
// is waiting for something else.
func TestSlowBootstrapIsSealedSoon(t *testing.T) {
	for name, s := range map[string]reconcile.Source{
		"beside a source that is being read": later{tenants(nil, fmt.Errorf("read two: %w", reconcile.ErrReading)), tenants(nil, nil), 2 * time.Minute},
		"beside one that hangs":              &source{},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slowClusters("ns/a", "other/b")
				l.clusters["ns/a"].acts, l.clusters["other/b"].hangs = 3*time.Second, true
				start := time.Now()
				rep := reconciler(s, l).Pass(t.Context())
				if formed := l.clusters["ns/a"].formedAt; formed.IsZero() || formed.Sub(start) > 20*time.Second {
					t.Errorf("sealed at %s: %+v", formed.Sub(start), rep.Clusters)
				}
				l.end(t)
			})
		})
	}
}

// TestInFlightErrorIsReportedUnlessStopped checks that the report contains an error of a slow cluster if the error
// occurred before the run was stopped, but not if stopping the run caused it.
func TestInFlightErrorIsReportedUnlessStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]bool{3800 * time.Millisecond: true, 2 * time.Second: false} {
			l := slowClusters("ns/a", "ns/b")
			reconciler(&source{}, l).UntilConverged(t.Context())
			a, b := l.clusters["ns/a"], l.clusters["ns/b"]
			b.world.LockHolder, b.world.Declared.SpecHash = "process 7 on elsewhere", "h2" // b waits for another process
			a.look, a.failsAt, l.changes = 0, 2, always{}                                  // a fails after 2.6 s
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			rep, _ := reconciler(&source{}, l).UntilConverged(ctx)
			cancel()
			if len(rep.Clusters) != 2 || (rep.Clusters[0].Error != "") != want {
				t.Errorf("cut after %s: %+v", limit, rep.Clusters)
			}
			l.end(t)
		}
	})
}

// TestBrieflyRefusedDeclarationIsProcessed checks that a declaration takes effect if its source is refused only while
// another source is being read.
func TestBrieflyRefusedDeclarationIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "other/b")
		l.refuses = func(n int) string {
			if n == 1 {
				return "one"
			}
			return ""
		}
		s := later{tenants(nil, fmt.Errorf("read two: %w", reconcile.ErrReading)), tenants(nil, nil), time.Minute}
		if rep := reconciler(s, l).Pass(t.Context()); rep.Error != "" || len(rep.Clusters) != 2 || slices.Contains(l.clusters["ns/a"].sources, "") {
			t.Errorf("%+v by %q", rep, l.clusters["ns/a"].sources)
		}
	})
}

// TestRandomDelaysDuplicateNothing checks that operations on a cluster never overlap, never use an outdated list, and
// never run after the end of the run, even if operations are slow, hang or are interrupted. The report must contain
// each cluster exactly once, with its errors.
func TestRandomDelaysDuplicateNothing(t *testing.T) {
	for seed := range timings(25, 60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			upTo := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
			l, s := slowAtRandom(random, upTo)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+upTo(400*time.Second))
			defer cancel()
			r, one := reconciler(s, l), random.IntN(2) == 0
			var rep report.Report
			if one {
				rep = r.Pass(ctx)
			} else {
				rep, _ = r.UntilConverged(ctx)
			}
			whole := ctx.Err() == nil
			cancel()
			synctest.Wait()
			told := map[string]report.Cluster{}
			for _, c := range rep.Clusters {
				told[c.Key()] = c
			}
			if len(told) != len(rep.Clusters) || whole && len(told) != len(l.clusters) {
				t.Errorf("seed %d: %d entries about %d of %d clusters", seed, len(rep.Clusters), len(told), len(l.clusters))
			}
			for name, c := range l.clusters {
				if c.hangs && whole && told[name].Error == "" {
					t.Errorf("seed %d: the error of %s is lost", seed, name)
				}
				besides := slices.DeleteFunc(slices.Clone(c.actions), func(a string) bool { return strings.HasPrefix(a, "Bootstrap") || strings.HasPrefix(a, "Seal") })
				if one && len(besides) > 1 {
					t.Errorf("seed %d: in one pass, %s: %q", seed, name, c.actions)
				}
			}
			l.end(t)
		})
	}
}

func slowAtRandom(random *rand.Rand, upTo func(time.Duration) time.Duration) (*slowLive, later) {
	first, last := tenants(nil, fmt.Errorf("read two: %w", reconcile.ErrReading)), tenants(nil, nil)
	first.Clusters, last.Clusters = nil, nil
	var names []string
	for i := range 2 + random.IntN(25) {
		from, namespace := "one", "ns"
		if random.IntN(2) == 0 {
			from, namespace = "two", "other"
		}
		c := declared(from, fmt.Sprintf("%s/c%02d", namespace, i))
		if from == "one" {
			first.Clusters = append(first.Clusters, c)
		}
		last.Clusters, names = append(last.Clusters, c), append(names, c.Cluster.Namespace+"/"+c.Cluster.Name)
	}
	l := slowClusters(names...)
	for _, name := range names {
		switch c := l.clusters[name]; random.IntN(6) {
		case 0:
			c.hangs = true
		case 1:
			c.looks = upTo(5 * time.Second)
		case 2:
			c.acts = upTo(5 * time.Second)
		}
	}
	l.lists = func() time.Duration { return upTo(1500 * time.Millisecond) }
	return l, later{first, last, upTo(time.Minute)}
}
