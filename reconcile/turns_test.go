package reconcile_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// fleet implements Live with many clusters, some of which do not respond.
type fleet struct {
	clusters []*fleetCluster

	mu    sync.Mutex
	asked []string
	// full, if set, is closed after atOnce observations have started. Each observation waits for it.
	full chan struct{}
}

const atOnce = 16

type fleetCluster struct {
	fleet         *fleet
	namespace     string // empty means "ns"
	name          string
	hangs, unwell bool
	looks         time.Duration // the duration of an observation
	acted         time.Time
}

func (f *fleet) Observe(_ context.Context, desired reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	observed := reconcile.Observed{Desired: desired}
	for _, c := range f.clusters {
		observed.Clusters = append(observed.Clusters, c)
	}
	return observed, nil
}

func (f *fleet) Changes(context.Context) reconcile.Changes { return nil }
func (f *fleet) Close(context.Context) error               { return nil }

func (c *fleetCluster) Identity() (string, string)                     { return cmp.Or(c.namespace, "ns"), c.name }
func (c *fleetCluster) Warnings() []string                             { return nil }
func (c *fleetCluster) Custom() *v1alpha1.EtcdCluster                  { return nil }
func (c *fleetCluster) Changes(decide.Action) ([]report.Change, error) { return nil, nil }
func (c *fleetCluster) Leave(bool)                                     {}
func (c *fleetCluster) Unwell() bool                                   { return c.unwell }
func (c *fleetCluster) DeclaredBy() string                             { return "" }

func (c *fleetCluster) State(ctx context.Context) (decide.State, error) {
	c.fleet.mu.Lock()
	c.fleet.asked = append(c.fleet.asked, c.name)
	if c.fleet.full != nil && len(c.fleet.asked) == atOnce {
		close(c.fleet.full)
	}
	c.fleet.mu.Unlock()
	if c.fleet.full != nil {
		<-c.fleet.full
	}
	time.Sleep(c.looks)
	if c.hangs {
		<-ctx.Done()
		return decide.State{}, context.Cause(ctx)
	}
	s := worldOf(c.name).Observe()
	s.Declared.Suspended, s.Objects.DeclarationDiffers = true, true // so that only one action is needed
	return s, nil
}

func (c *fleetCluster) Do(context.Context, decide.Action) (report.Outcome, error) {
	c.acted = time.Now()
	return report.Outcome{Changed: true}, nil
}

func (c *fleetCluster) Report(context.Context, report.Cluster, reconcile.SourceStatus) ([]report.News, error) {
	return nil, nil
}

// newFleet returns a fleet of size clusters. The first hang clusters do not respond.
func newFleet(size, hang int) *fleet {
	f := &fleet{}
	for n := range size {
		f.clusters = append(f.clusters, &fleetCluster{fleet: f, name: fmt.Sprintf("c%03d", n), hangs: n < hang, unwell: n < hang})
	}
	return f
}

// TestSlowClustersDoNotDelayOthers checks that clusters that respond are acted on long before the others time out, even
// if sixty of a hundred clusters do not respond and are processed first.
func TestSlowClustersDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(100, 60)
	r := reconciler(&source{}, f)
	r.ClusterTimeout = 10 * time.Second
	start := time.Now()
	rep := r.Pass(t.Context())
	for i, c := range f.clusters {
		entry := rep.Clusters[i]
		switch {
		case c.hangs && entry.Error == "":
			t.Errorf("%s is not reported as slow: %+v", c.name, entry)
		case !c.hangs && (c.acted.IsZero() || c.acted.Sub(start) > r.ClusterTimeout):
			t.Errorf("%s was acted on after %s", c.name, c.acted.Sub(start))
		}
	}
	if took := time.Since(start); took > 3*r.ClusterTimeout {
		t.Errorf("the pass took %s", took)
	}
	if want := "processing the cluster took longer than 10s, the maximum per cluster"; rep.Clusters[0].Error != want {
		t.Errorf("got %q, want %q", rep.Clusters[0].Error, want)
	}
}

// TestHangingClustersCostOneTimeout checks that unresponsive clusters, one in twenty, extend the pass by less than one
// cluster timeout, and that the other clusters finish long before the pass ends.
func TestHangingClustersCostOneTimeout(t *testing.T) {
	pass := func(hang int) (whole, others time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(1000, hang)
			for _, c := range f.clusters {
				c.looks = 150 * time.Millisecond // so that all of them take about 9 s, as measured
			}
			start := time.Now()
			reconciler(&source{}, f).Pass(t.Context())
			whole = time.Since(start)
			for _, c := range f.clusters {
				if !c.hangs {
					others = max(others, c.acted.Sub(start))
				}
			}
		})
		return whole, others
	}
	well, _ := pass(0)
	whole, others := pass(50)
	if added := whole - well; added >= reconcile.ClusterTimeout || others > well+10*time.Second {
		t.Errorf("a pass takes %s more than %s; responsive clusters are done after %s", added, well, others)
	}
}

// TestUnhealthyClustersComeFirst checks that clusters that were unhealthy in the last report or failed in the previous
// pass are processed first.
func TestUnhealthyClustersComeFirst(t *testing.T) {
	t.Parallel()
	f := newFleet(40, 0)
	f.clusters[33].unwell = true
	f.clusters[37].hangs = true
	r := reconciler(&source{}, f)
	r.ClusterTimeout = 50 * time.Millisecond
	first := func() []string {
		f.asked, f.full = nil, make(chan struct{})
		r.Pass(t.Context())
		return slices.Sorted(slices.Values(f.asked[:atOnce]))
	}
	if got := first(); !slices.Contains(got, "c033") || slices.Contains(got, "c037") {
		t.Errorf("first in line were %q", got)
	}
	if got := first(); !slices.Contains(got, "c033") || !slices.Contains(got, "c037") {
		t.Errorf("after a failure, first in line were %q", got)
	}
}

// TestNamespacesTakeTurns checks that a namespace full of unhealthy clusters does not delay other namespaces.
func TestNamespacesTakeTurns(t *testing.T) {
	f := newFleet(1000, 0)
	for _, c := range f.clusters {
		c.unwell = true
	}
	f.clusters = append(f.clusters, &fleetCluster{fleet: f, namespace: "other", name: "well"}, &fleetCluster{fleet: f, namespace: "zoo", name: "well-2"})
	f.full = make(chan struct{})
	reconciler(&source{}, f).Pass(t.Context())
	if first := f.asked[:atOnce]; !slices.Contains(first, "well") || !slices.Contains(first, "well-2") {
		t.Errorf("first in line were %q", first)
	}
}

// TestUnresponsiveClusterDelaysOthersByOneTurn checks that an unresponsive cluster delays another cluster by at most
// one turn, in a single pass or in several, even if the other cluster needs many steps. No pass starts on a cluster
// that is still being processed, and a single pass observes the unresponsive cluster once.
func TestUnresponsiveClusterDelaysOthersByOneTurn(t *testing.T) {
	for name, run := range map[string]func(context.Context, *reconcile.Reconciler) report.Report{
		"pass": func(ctx context.Context, r *reconcile.Reconciler) report.Report { return r.Pass(ctx) },
		"until converged": func(ctx context.Context, r *reconcile.Reconciler) report.Report {
			rep, converged := r.UntilConverged(ctx)
			if converged {
				t.Error("converged")
			}
			return rep
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mutex sync.Mutex
				start, looks, formed := time.Now(), []time.Duration(nil), time.Duration(0)
				l := &live{worlds: map[string]*simulate.World{"a": worldOf("a"), "b": worldOf("b")}}
				l.hanging = map[string]func(){"b": func() {
					mutex.Lock()
					defer mutex.Unlock()
					looks = append(looks, time.Since(start))
				}}
				l.telling = func(c report.Cluster) {
					if c.Decision.Rule == decide.Converged && formed == 0 {
						formed = time.Since(start)
					}
				}
				r := reconciler(&source{}, l)
				r.ClusterTimeout = time.Minute
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
				defer cancel()
				rep := run(ctx, r)
				want := []time.Duration{0}
				if name != "pass" { // it is observed again after the pause that follows each failure
					want = append(want, time.Minute, 2*time.Minute)
				}
				if formed == 0 || formed > 4*time.Second || len(looks) != len(want) {
					t.Errorf("a formed after %s; b was looked at after %s, want %s", formed, looks, want)
				}
				for i, at := range want[:min(len(want), len(looks))] {
					if d := looks[i] - at; d < 0 || d > 10*time.Second {
						t.Errorf("b was looked at after %s, want %s", looks, want)
					}
				}
				if len(rep.Clusters) != 2 || rep.Clusters[0].Outcome == nil || !strings.Contains(rep.Clusters[1].Error, "took longer than 1m0s") {
					t.Errorf("reported %+v", rep.Clusters)
				}
			})
		})
	}
}
