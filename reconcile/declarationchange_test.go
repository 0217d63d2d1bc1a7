package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// settling is a Live that determines which source a cluster belongs to, as clusters.Live does.
type settling struct {
	*slowLive
	before string
}

func (s settling) Observe(ctx context.Context, d reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	seen, err := s.slowLive.Observe(ctx, d, wanted)
	seen.Desired = seen.Desired.ResolveOwners(func(string) reconcile.Previous { return reconcile.Previous{Source: s.before} })
	return seen, err
}

// both returns declarations in which both sources declare ns/a. Source two also declares ns/b with the given content.
func both(content string) reconcile.Desired {
	d := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Revision: "main@sha1:1"}, {Name: "two", Revision: "main@sha1:1"}}}
	for _, c := range []struct{ source, cluster, content string }{{"one", "ns/a", "x"}, {"two", "ns/a", "x"}, {"two", "ns/b", content}} {
		one := declared(c.source, c.cluster)
		one.Applied = map[string]any{"spec": c.content}
		d.Clusters = append(d.Clusters, one)
	}
	return d
}

// TestDuplicateDeclarationIsNotRequeued checks that a cluster that two sources declare is not observed again when one
// of them pushes a change to a different cluster.
func TestDuplicateDeclarationIsNotRequeued(t *testing.T) {
	for _, before := range []string{"one", ""} {
		synctest.Test(t, func(t *testing.T) {
			l := slowClusters("ns/a", "ns/b")
			reconciler(&source{}, l).UntilConverged(t.Context())
			l.changes = newEvents()
			git := &followed{next: make(chan reconcile.Desired, 1)}
			git.next <- both("0")
			stop := start(t, reconciler(git, settling{l, before}), seldom)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			a, b := l.clusters["ns/a"].look, l.clusters["ns/b"].look
			for n := range 20 {
				git.next <- both(fmt.Sprint(n + 1))
				time.Sleep(5 * time.Second)
			}
			synctest.Wait()
			if a, b := l.clusters["ns/a"].look-a, l.clusters["ns/b"].look-b; a > 0 || b != 20 {
				t.Errorf("before %q: looked %d times at the unchanged cluster that is declared twice, %d times at the other", before, a, b)
			}
			stop()
			l.end(t)
		})
	}
}

// setRefuses makes future lists refuse the named source. If the name is empty, no source is refused.
func (l *slowLive) setRefuses(about string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = func(int) string { return about }
}

// TestRemovalDuringRefusalIsProcessedLater checks that clusters that a source no longer declares are processed once the
// source is accepted, even if it has been refused or unreadable since the loop started.
func TestRemovalDuringRefusalIsProcessedLater(t *testing.T) {
	for _, what := range []string{"refused", "unread"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slowClusters("ns/a", "ns/b", "ns/c")
				reconciler(&source{}, l).UntilConverged(t.Context())
				l.changes = newEvents()
				git := &followed{next: make(chan reconcile.Desired, 1)}
				if what == "refused" {
					git.next <- revision("x", "x", "x")
					l.setRefuses("one")
				} else {
					git.next <- reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Unread: errors.New("no route to host")}}}
				}
				stop := start(t, reconciler(git, l), seldom)
				time.Sleep(10 * time.Second)
				l.setRefuses("")
				before := l.clusters["ns/c"].look
				git.next <- revision("x", "x")
				time.Sleep(time.Minute)
				synctest.Wait()
				if l.clusters["ns/c"].look == before {
					t.Error("did not look at a cluster that is no longer declared")
				}
				stop()
				l.end(t)
			})
		})
	}
}

// TestChangeIsProcessedAfterPassOverOtherCluster checks that a declaration that changed while its source was refused is
// processed, even if the first pass that accepts the source covers only a different cluster.
func TestChangeIsProcessedAfterPassOverOtherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, nil, "ns/a", "ns/b")
		l.setRefuses("one")
		l.git.next <- revision("y", "x")
		time.Sleep(20 * time.Second)
		l.setRefuses("")
		l.looks("ns/a")
		l.events.tell("ns/b", false)
		time.Sleep(time.Second)
		l.git.next <- revision("y", "x")
		time.Sleep(time.Minute)
		if looks := len(l.looks("ns/a")); looks != 1 {
			t.Errorf("looked %d times", looks)
		}
		l.stop()
	})
}

// TestRefusalAfterSlowObservationLosesNoChange checks that a declaration that changed while its cluster was being
// observed, and whose source was then refused, is processed once the source is accepted.
func TestRefusalAfterSlowObservationLosesNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop(t, seldom, nil, "ns/a", "ns/b")
		l.mu.Lock()
		l.clusters["ns/a"].looks = 20 * time.Second
		l.mu.Unlock()
		l.events.tell("ns/a", false)
		time.Sleep(3 * time.Second)
		l.git.next <- revision("y", "x") // during the observation
		time.Sleep(time.Second)
		l.events.tell("ns/b", false) // a pass over a different cluster
		time.Sleep(time.Second)
		l.setRefuses("one")
		time.Sleep(time.Minute) // it is observed with the last applied declaration
		l.looks("ns/a")
		l.setRefuses("")
		l.git.next <- revision("y", "x")
		time.Sleep(time.Minute)
		if looks := len(l.looks("ns/a")); looks != 1 {
			t.Errorf("looked %d times", looks)
		}
		l.stop()
	})
}

// TestRefusedSourceIsNotRequeuedByOtherPushes checks that a push to one source does not cause the changed clusters of
// another source, which is permanently rejected, to be observed again.
func TestRefusedSourceIsNotRequeuedByOtherPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for n := range 100 {
			names = append(names, fmt.Sprintf("ns/a%d", n))
		}
		l := slowClusters(append(names, "other/b")...)
		reconciler(&source{}, l).UntilConverged(t.Context())
		l.changes = newEvents()
		says := func(one, two string) reconcile.Desired {
			d := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Revision: one, Namespaces: reconcile.Namespaces{"ns"}},
				{Name: "two", Revision: two, Namespaces: reconcile.Namespaces{"other"}}}}
			for _, name := range names {
				c := declared("one", name)
				c.Applied = map[string]any{"spec": one}
				d.Clusters = append(d.Clusters, c)
			}
			c := declared("two", "other/b")
			c.Applied = map[string]any{"spec": two}
			d.Clusters = append(d.Clusters, c)
			return d
		}
		git := &followed{next: make(chan reconcile.Desired, 1)}
		git.next <- says("x", "0")
		stop := start(t, reconciler(git, l), seldom)
		looks := func() (n int) {
			synctest.Wait()
			for _, name := range names {
				n += l.clusters[name].look
			}
			return n
		}
		time.Sleep(5 * time.Second)
		l.setRefuses("one")
		git.next <- says("y", "0")
		time.Sleep(5 * time.Second)
		before := looks()
		for n := range 20 {
			git.next <- says("y", fmt.Sprint(n+1))
			time.Sleep(5 * time.Second)
		}
		if n := looks() - before; n > 100 {
			t.Errorf("20 pushes of another source caused %d looks at 100 clusters of a refused source", n)
		}
		l.setRefuses("")
		before = looks()
		git.next <- says("y", "20")
		time.Sleep(5 * time.Second)
		if n := looks() - before; n < 100 || n > 101 {
			t.Errorf("looked %d times at 100 clusters once they counted", n)
		}
		stop()
		l.end(t)
	})
}

// TestRefusedChangeIsProcessedOnceAccepted checks that declarations that changed while their source was refused are
// processed once the source is accepted. The same applies if the ancestry of the source was unknown until the source
// became unreadable.
func TestRefusedChangeIsProcessedOnceAccepted(t *testing.T) {
	outage := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "one", Unread: errors.New("no route to host")}}}
	for name, meanwhile := range map[string]func(*looping){
		"refused": func(l *looping) { l.setRefuses("one") },
		"asked about until git is away": func(l *looping) {
			l.setAsks("one")
			time.AfterFunc(2*time.Second, func() {
				l.setAsks("")
				l.git.next <- outage
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := loop(t, seldom, nil, "ns/a", "ns/b")
				meanwhile(l)
				l.git.next <- revision("y", "x")
				time.Sleep(20 * time.Second)
				l.setRefuses("")
				l.looks("ns/a")
				l.git.next <- revision("y", "x")
				time.Sleep(time.Minute)
				if looks := len(l.looks("ns/a")); looks != 1 {
					t.Errorf("looked %d times", looks)
				}
				l.git.next <- revision("y", "x")
				time.Sleep(time.Minute)
				if looks := len(l.looks("ns/a")); looks != 0 {
					t.Errorf("looked %d times at a cluster that had been processed", looks)
				}
				l.stop()
			})
		})
	}
}

// TestRefusedDeclarationsAreForgotten checks that ten thousand revisions of a refused source use no more memory than a
// thousand, even if each revision declares a different cluster.
func TestRefusedDeclarationsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		often := seldom
		often.Resync = time.Minute
		l := loop(t, often, nil, "ns/a")
		l.setRefuses("one")
		heap := map[int]uint64{1000: 0, 10_000: 0}
		for n := range 10_001 {
			d := revision("x")
			d.Clusters = append(d.Clusters, declared("one", fmt.Sprintf("ns/%s-%d", strings.Repeat("x", 200), n)))
			l.git.next <- d
			time.Sleep(time.Second)
			if _, measured := heap[n]; measured {
				time.Sleep(2 * time.Minute)
				l.looks("ns/a")
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				heap[n] = m.HeapAlloc
			}
		}
		if heap[10_000] > heap[1000]+1<<20 {
			t.Errorf("the heap grew from %d to %d bytes", heap[1000], heap[10_000])
		}
		l.stop()
	})
}
