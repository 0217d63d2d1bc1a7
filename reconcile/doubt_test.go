package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// neighbors returns declarations in which source one declares ns/a and source two declares ns/b. Each revision of two
// has different content for ns/b. If unread is set, source two could not be read for that reason.
func neighbors(revision int, unread error) reconcile.Desired {
	d := reconcile.Desired{Sources: []reconcile.SourceState{
		{Name: "one", Revision: "main@sha1:1"},
		{Name: "two", Revision: fmt.Sprintf("main@sha1:%d", revision), Unread: unread},
	}, Clusters: []reconcile.Declaration{declared("one", "ns/a")}}
	if unread == nil {
		b := declared("two", "ns/b")
		b.Applied = map[string]any{"spec": revision}
		d.Clusters = append(d.Clusters, b)
	}
	return d
}

// doubtful starts a loop over ns/a and ns/b, which two sources declare in the same namespace. d holds the first
// declarations. The ancestry of source two is unknown until setAsks is called.
func doubtful(t *testing.T, d reconcile.Desired) (l *slowLive, git *followed, r *reconcile.Reconciler, stop func()) {
	l, git = slowClusters("ns/a", "ns/b"), &followed{next: make(chan reconcile.Desired, 1)}
	reconciler(&source{}, l).UntilConverged(t.Context())
	for _, c := range l.clusters {
		c.looked = nil
	}
	l.changes, l.listed = newEvents(), 0
	l.setAsks("two")
	git.next <- d
	r = reconciler(git, l)
	end := start(t, r, seldom)
	return l, git, r, func() {
		end()
		l.end(t)
	}
}

// TestLoopHealsDuringEndlessAncestryCheck checks that a loop processes all clusters even if the ancestry of a source
// that shares a namespace with them never becomes known. This happens, for example, if its branch is force-pushed
// before each read and some reads fail. The clusters of that source keep the last applied state.
func TestLoopHealsDuringEndlessAncestryCheck(t *testing.T) {
	away := errors.New("no route to host")
	for name, unread := range map[string]func(n int) error{
		"same revision":          nil,
		"new revisions":          func(int) error { return nil },
		"every other read fails": func(n int) error { return map[bool]error{true: away}[n%2 == 0] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, git, r, stop := doubtful(t, neighbors(1, nil))
				begun := time.Now()
				var ready time.Duration
				for n := range 60 {
					if unread != nil {
						git.next <- neighbors(n, unread(n))
					}
					time.Sleep(10 * time.Second)
					if ready == 0 && r.Ready() {
						ready = time.Since(begun)
					}
					switch n % 6 {
					case 2:
						l.changes.(*events).tell("ns/a", false)
					case 5:
						l.changes.(*events).tell("ns/b", false)
					}
				}
				synctest.Wait()
				if ready == 0 || ready > time.Minute {
					t.Errorf("ready after %s", ready)
				}
				l.mu.Lock()
				for name, c := range l.clusters {
					if len(c.looked) == 0 || c.looked[0].Sub(begun) > time.Minute || len(c.looked) < 9 {
						t.Errorf("%s was observed %d times, first %v", name, len(c.looked), c.looked[:min(1, len(c.looked))])
					}
				}
				if slices.Contains(l.clusters["ns/b"].sources, "two") {
					t.Error("a declaration of unknown ancestry was used")
				}
				if l.listed > 400 {
					t.Errorf("%d lists in ten minutes", l.listed)
				}
				l.mu.Unlock()
				stop()
			})
		})
	}
}

// TestLoopHealsDuringAlternatingAncestryChecks checks that a loop processes all clusters even if there is always a
// source whose ancestry is not known yet, as long as each source is accepted from time to time. While the ancestry of a
// source is unknown, its clusters wait, and their status does not change. Clusters of an unreadable source do not wait.
func TestLoopHealsDuringAlternatingAncestryChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d reconcile.Desired
		by := map[string]string{"ns/a": "one", "ns/b": "two", "ns/c": "three", "ns/d": "four"}
		l := slowClusters("ns/a", "ns/b", "ns/c", "ns/d")
		reconciler(&source{}, l).UntilConverged(t.Context())
		for name, c := range l.clusters {
			c.by, c.looked, c.sources = by[name], nil, nil
			p := reconcile.SourceState{Name: c.by, Revision: "main@sha1:1"}
			if p.Name == "four" {
				p.Unread = errors.New("no route to host")
			} else {
				d.Clusters = append(d.Clusters, declared(c.by, name))
			}
			d.Sources = append(d.Sources, p)
		}
		begun, changes := time.Now(), newEvents()
		l.changes = changes
		about := func() (names []string) {
			phase := time.Since(begun) % (40 * time.Second)
			if phase < 25*time.Second {
				names = append(names, "two")
			}
			if phase < 5*time.Second || phase >= 20*time.Second {
				names = append(names, "three")
			}
			return names
		}
		git := &followed{next: make(chan reconcile.Desired, 1)}
		git.next <- d
		stop := start(t, reconciler(git, asking{l, about}), seldom)
		for range 60 {
			for name := range by {
				changes.tell(name, false)
				time.Sleep(2500 * time.Millisecond)
			}
		}
		stop()
		for name, c := range l.clusters {
			if len(c.looked) < 15 || c.looked[0].Sub(begun) > time.Minute {
				t.Errorf("%s was observed %d times, first %v", name, len(c.looked), c.looked[:min(1, len(c.looked))])
			}
			if by := map[bool]string{true: c.by}[c.by != "four"]; slices.ContainsFunc(c.sources, func(s string) bool { return s != by }) {
				t.Errorf("%s was reported of %q", name, c.sources)
			}
		}
		l.end(t)
	})
}

// TestLoopHealsDuringEndlessFirstRead checks that a loop processes all clusters even if a source that shares a
// namespace with them is never read, for example because many sources hang. Once the source is read, its declarations
// are used.
func TestLoopHealsDuringEndlessFirstRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, git, r, stop := doubtful(t, neighbors(1, fmt.Errorf("read two: %w", reconcile.ErrReading)))
		l.setAsks("")
		begun := time.Now()
		time.Sleep(time.Minute)
		if r.Ready() {
			t.Error("ready although a source is still being read")
		}
		time.Sleep(4 * time.Minute)
		l.setAsks("one")
		changes := l.changes.(*events)
		changes.mu.Lock()
		changes.all = true // a full pass
		changes.mu.Unlock()
		changes.tell("ns/a", false)
		time.Sleep(10 * time.Second)
		l.setAsks("")
		time.Sleep(5 * time.Minute)
		if !r.Ready() || l.listed > 100 {
			t.Errorf("ready %t, after %d lists", r.Ready(), l.listed)
		}
		for name, c := range l.clusters {
			if len(c.looked) == 0 || c.looked[0].Sub(begun) > 3*time.Minute {
				t.Errorf("%s was observed %d times, first %v", name, len(c.looked), c.looked[:min(1, len(c.looked))])
			}
		}
		git.next <- neighbors(1, nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		l.mu.Lock()
		if sources := l.clusters["ns/b"].sources; sources[len(sources)-1] != "two" {
			t.Errorf("reported of %q", sources)
		}
		l.mu.Unlock()
		stop()
	})
}

// TestLoopUsesDeclarationOnceSlowAncestryIsKnown checks that a declaration whose ancestry was unknown for a long time
// is used soon after the ancestry becomes known, and that until then the loop does not keep processing all clusters.
func TestLoopUsesDeclarationOnceSlowAncestryIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, r, stop := doubtful(t, neighbors(1, nil))
		passes := 0
		r.Progress = func(rep report.Report, _ time.Duration) {
			if len(rep.Clusters) == 2 {
				passes++
			}
		}
		time.Sleep(10 * time.Minute)
		l.setAsks("")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		l.mu.Lock()
		if sources := l.clusters["ns/b"].sources; sources[len(sources)-1] != "two" {
			t.Errorf("reported of %q", sources)
		}
		l.mu.Unlock()
		if passes > 10 {
			t.Errorf("%d full passes", passes)
		}
		stop()
	})
}

// TestRunProcessesNeighborsDuringSlowAncestryCheck checks that a run other than a loop processes the clusters of other
// sources without waiting for a slow ancestry check. The clusters of the source itself wait, because the run would not
// process them again.
func TestRunProcessesNeighborsDuringSlowAncestryCheck(t *testing.T) {
	for mode, run := range map[string]func(*reconcile.Reconciler, context.Context) report.Report{
		"pass": func(r *reconcile.Reconciler, ctx context.Context) report.Report { return r.Pass(ctx) },
		"until converged": func(r *reconcile.Reconciler, ctx context.Context) report.Report {
			rep, converged := r.UntilConverged(ctx)
			if !converged {
				t.Error("not converged")
			}
			return rep
		},
	} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := slowClusters("ns/a", "ns/b")
				reconciler(&source{}, l).UntilConverged(t.Context())
				begun := time.Now()
				for _, c := range l.clusters {
					c.looked = nil
				}
				l.asks = func(int) string { return map[bool]string{true: "two"}[time.Since(begun) < 5*time.Minute] }
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				rep := run(reconciler(&source{desired: neighbors(1, nil)}, l), ctx)
				a, b := l.clusters["ns/a"].looked[0].Sub(begun), l.clusters["ns/b"].looked[0].Sub(begun)
				if a > time.Minute || b < 5*time.Minute || b > 6*time.Minute || len(rep.Clusters) != 2 || rep.Error != "" {
					t.Errorf("observed after %s and %s: %+v", a, b, rep)
				}
				l.end(t)
			})
		})
	}
}

// timings returns the number of random timings to try: few, or all of them in "make soak".
func timings(few, all uint64) uint64 {
	if os.Getenv("QUORATE_SOAK_PEOPLE") != "" {
		return all
	}
	return few
}

// TestLoopHealsWithRandomSourceTiming checks that a loop processes a changing cluster at least every 45 seconds, and
// eventually uses every declaration, even while other sources change, fail or have unknown ancestry at random times.
func TestLoopHealsWithRandomSourceTiming(t *testing.T) {
	for seed := range timings(10, 25) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			l, changes, begun := slowClusters("ns/a", "ns/b", "ns/c"), newEvents(), time.Now()
			by := map[string]string{"ns/a": "one", "ns/b": "two", "ns/c": "three"}
			reconciler(&source{}, l).UntilConverged(t.Context())
			for name, c := range l.clusters {
				c.by, c.looked, c.sources = by[name], nil, nil
			}
			l.changes = changes
			const ends = 10 * time.Minute
			doubts := map[string][]bool{} // by source, one entry for every ten seconds
			for _, name := range []string{"two", "three"} {
				for range int(ends/(10*time.Second)) + 5 {
					doubts[name] = append(doubts[name], random.IntN(3) > 0)
				}
			}
			about := func() (names []string) {
				for name, is := range doubts {
					if n := int(time.Since(begun) / (10 * time.Second)); n < len(is) && is[n] {
						names = append(names, name)
					}
				}
				return names
			}
			read := func(last bool) (d reconcile.Desired) {
				for _, cluster := range []string{"ns/a", "ns/b", "ns/c"} {
					p := reconcile.SourceState{Name: by[cluster], Revision: "main@sha1:1"}
					if p.Name != "one" && !last && random.IntN(4) == 0 {
						p.Unread = errors.New("no route to host")
					} else {
						c := declared(p.Name, cluster)
						c.Applied = map[string]any{"spec": random.IntN(3)}
						if last {
							c.Applied["spec"] = "last"
						}
						d.Clusters = append(d.Clusters, c)
					}
					d.Sources = append(d.Sources, p)
				}
				return d
			}
			git := &followed{next: make(chan reconcile.Desired, 1)}
			git.next <- read(false)
			stop := start(t, reconciler(git, asking{l, about}), seldom)
			for time.Since(begun) < ends {
				time.Sleep(3 * time.Second)
				changes.tell("ns/a", false)
				if random.IntN(4) == 0 {
					git.next <- read(false)
				}
			}
			last := time.Now()
			git.next <- read(true)
			time.Sleep(65 * time.Second) // the last ancestry becomes known after 50 s
			stop()
			for name, c := range l.clusters {
				if c.looked[len(c.looked)-1].Before(last) || c.sources[len(c.sources)-1] != by[name] {
					t.Errorf("seed %d: the last declaration of %s was not used", seed, name)
				}
			}
			at := begun
			for _, next := range append(l.clusters["ns/a"].looked, last) {
				if next.Sub(at) > 45*time.Second {
					t.Errorf("seed %d: observed %s after the start, and then after %s", seed, at.Sub(begun), next.Sub(at))
				}
				at = next
			}
			if l.listed > 1000 {
				t.Errorf("seed %d: %d lists", seed, l.listed)
			}
			l.end(t)
		})
	}
}
