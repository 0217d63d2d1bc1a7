package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// told are changes of clusters that a test tells of.
type told struct {
	woken    chan struct{}
	clusters map[string]bool
	all      bool
}

func (c *told) Woken() <-chan struct{} { return c.woken }

func (c *told) Take() (clusters map[string]bool, all bool) {
	clusters, all = c.clusters, c.all
	c.clusters, c.all = nil, false
	return clusters, all
}

// A run looks at a cluster with nothing left to do when it begins, now and then, and before it ends.
func TestLooksAtWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/b")
		reconciler(&source{}, l).UntilConverged(t.Context())
		a, b := l.clusters["ns/a"], l.clusters["ns/b"]
		a.look, b.look, a.world.Declared.SpecHash = 0, 0, "h2"
		start := time.Now()
		rep, converged := reconciler(&source{}, l).UntilConverged(t.Context())
		if !converged || len(rep.Clusters) != 2 || rep.Clusters[0].State.Objects.RunsHash != "h2" {
			t.Fatalf("%t: %+v", converged, rep)
		}
		if most := 2 + int(time.Since(start)/(5*time.Second)); b.look > most || b.look < 2 || a.look <= b.look {
			t.Errorf("in %s it looked %d times at a, and %d at b", time.Since(start), a.look, b.look)
		}
		l.end(t)
	})
}

// A change leads to its cluster alone; one that was missed, to all.
func TestLooksAtWhatHasChanged(t *testing.T) {
	for _, c := range []struct {
		changes told
		aAgain  bool
	}{
		{changes: told{clusters: map[string]bool{"ns/b": true}}},
		{changes: told{clusters: map[string]bool{"ns/unknown": true, "ns/b": true}}},
		{changes: told{all: true}, aAgain: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := slowClusters("ns/a", "ns/b", "ns/waits")
			reconciler(&source{}, l).UntilConverged(t.Context())
			waits := l.clusters["ns/waits"].world
			waits.LockHolder, waits.Declared.SpecHash = "process 7 on elsewhere", "h2" // so the run goes on
			a, b := l.clusters["ns/a"], l.clusters["ns/b"]
			a.look, b.look = 0, 0
			changes := c.changes
			changes.woken = make(chan struct{}, 1)
			begun := changes
			begun.clusters, begun.all = nil, false
			l.changes = &begun
			time.AfterFunc(2500*time.Millisecond, func() {
				begun.clusters, begun.all = changes.clusters, changes.all
				begun.woken <- struct{}{}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			reconciler(&source{}, l).UntilConverged(ctx)
			if again := a.look == 2; a.look > 2 || again != c.aAgain || b.look != 2 {
				t.Errorf("%+v: it looked %d times at a, and %d at b", c.changes, a.look, b.look)
			}
			l.end(t)
		})
	}
}

// One that is gone while something was left to do for it is not looked for again and again.
func TestLooksNotAtWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/waits")
		reconciler(&source{}, l).UntilConverged(t.Context())
		waits := l.clusters["ns/waits"].world
		waits.LockHolder, waits.Declared.SpecHash = "process 7 on elsewhere", "h2"
		l.listed = 0
		time.AfterFunc(500*time.Millisecond, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.clusters, "ns/waits")
		})
		rep, converged := reconciler(&source{}, l).UntilConverged(t.Context())
		if !converged || len(rep.Clusters) != 1 || l.listed > 10 {
			t.Errorf("converged %t after %d lists: %+v", converged, l.listed, rep.Clusters)
		}
	})
}

// Clusters that only wait are looked at again no more often than a run has time for, however many they are; few are
// looked at as often as they ask for.
func TestWaitsOfManyCostLittle(t *testing.T) {
	for _, many := range []int{1, 600} {
		synctest.Test(t, func(t *testing.T) {
			var names []string
			for n := range many {
				names = append(names, fmt.Sprintf("ns/c%d", n))
			}
			l := slowClusters(names...)
			for _, c := range l.clusters {
				c.world.LockHolder = "process 7 on elsewhere"
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			reconciler(&source{}, l).UntilConverged(ctx)
			looks, least := 0, 1000
			for _, c := range l.clusters {
				looks += c.look
				least = min(least, c.look)
			}
			t.Logf("%d clusters: %d looks in a minute", many, looks)
			// Once every five seconds it looks at all, which takes no time here.
			if many == 1 && looks < 50 || many > 1 && looks > 14*many+60*60 || least < 3 {
				t.Errorf("%d clusters: it looked %d times in a minute, and at one %d times", many, looks, least)
			}
			l.end(t)
		})
	}
}
