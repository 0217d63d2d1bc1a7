package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// told reports changes set by a test.
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

// TestConvergedClusterIsObservedSeldom checks that a run observes a cluster with nothing left to do only at the start
// and end of the run, and occasionally in between.
func TestConvergedClusterIsObservedSeldom(t *testing.T) {
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

// TestChangeRequeuesOnlyItsCluster checks that after a change only the affected cluster is observed, and that after a
// missed change all clusters are observed.
func TestChangeRequeuesOnlyItsCluster(t *testing.T) {
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
			waits.LockHolder, waits.Declared.SpecHash = "process 7 on elsewhere", "h2" // so that the run continues
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

// TestDeletedClusterIsNotRequeued checks that a run does not repeatedly try to observe a cluster that was deleted while
// it had something left to do.
func TestDeletedClusterIsNotRequeued(t *testing.T) {
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

// restless reports a change to each of its clusters ten times a second.
type restless struct {
	woken    chan struct{}
	clusters map[string]bool
}

func (c restless) Woken() <-chan struct{} { return c.woken }

func (c restless) Take() (clusters map[string]bool, all bool) { return maps.Clone(c.clusters), false }

func (c restless) wake(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case c.woken <- struct{}{}:
			time.Sleep(100 * time.Millisecond)
		case <-ctx.Done():
		}
	}
}

// waitingClusters returns clusters, named ns/c0 and so on, that are waiting for another process.
func waitingClusters(many int) *slowLive {
	var names []string
	for n := range many {
		names = append(names, fmt.Sprintf("ns/c%d", n))
	}
	l := slowClusters(names...)
	for _, c := range l.clusters {
		c.world.LockHolder = "process 7 on elsewhere"
	}
	return l
}

// TestManyWaitingClustersAreObservedSeldom checks that the rate at which a run observes waiting clusters is limited,
// regardless of how many there are and how often they change. If only a few clusters are waiting, each is observed
// whenever it changes.
func TestManyWaitingClustersAreObservedSeldom(t *testing.T) {
	for _, test := range []struct {
		many  int
		moves bool
	}{{1, false}, {600, false}, {1, true}, {600, true}} {
		many := test.many
		synctest.Test(t, func(t *testing.T) {
			l := waitingClusters(many)
			moving := restless{make(chan struct{}), map[string]bool{}}
			for name := range l.clusters {
				moving.clusters[name] = false
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if test.moves {
				l.changes = moving
				go moving.wake(ctx)
			}
			reconciler(&source{}, l).UntilConverged(ctx)
			looks, least := 0, 1000
			for _, c := range l.clusters {
				looks += c.look
				least = min(least, c.look)
			}
			t.Logf("%+v: %d looks in a minute", test, looks)
			// The run makes a full pass every five seconds, which takes no time here.
			if many == 1 && looks < 50 || many == 1 && test.moves && looks < 500 || many > 1 && looks > 14*many+60*60 || least < 3 {
				t.Errorf("%+v: it looked %d times in a minute, and at one %d times", test, looks, least)
			}
			l.end(t)
		})
	}
}

// TestNewDeclarationEndsPause checks that a changed declaration is processed as soon as it is known, even if its
// cluster is one of many waiting clusters that change constantly.
func TestNewDeclarationEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waitingClusters(600)
		changes := &told{woken: make(chan struct{}, 1)}
		l.changes = changes
		ctx, cancel := context.WithTimeout(t.Context(), 1900*time.Millisecond)
		defer cancel()
		first, second := 0, 0
		time.AfterFunc(1000*time.Millisecond, func() {
			first, second = l.clusters["ns/c1"].look, l.clusters["ns/c2"].look
			changes.clusters = map[string]bool{"ns/c1": true, "ns/c2": false}
			changes.woken <- struct{}{}
		})
		reconciler(&source{}, l).UntilConverged(ctx)
		if l.clusters["ns/c1"].look != first+1 || l.clusters["ns/c2"].look != second {
			t.Errorf("looked %d and %d times, before %d and %d", l.clusters["ns/c1"].look, l.clusters["ns/c2"].look, first, second)
		}
		l.end(t)
	})
}

// TestDeclarationDuringSlowObservationEndsPause checks the same for a declaration that changes during a long
// observation of its cluster.
func TestDeclarationDuringSlowObservationEndsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waitingClusters(600)
		l.clusters["ns/c1"].looks, l.clusters["ns/c2"].looks = 4*time.Second, 4*time.Second
		events := newEvents()
		l.changes = events
		ctx, cancel := context.WithTimeout(t.Context(), 4900*time.Millisecond)
		defer cancel()
		time.AfterFunc(3*time.Second, func() { events.tell("ns/c1", true) })
		time.AfterFunc(3200*time.Millisecond, func() { events.tell("ns/c2", false) })
		reconciler(&source{}, l).UntilConverged(ctx)
		if one, two := l.clusters["ns/c1"].look, l.clusters["ns/c2"].look; one != 2 || two != 1 {
			t.Errorf("looked %d and %d times", one, two)
		}
		l.end(t)
	})
}
