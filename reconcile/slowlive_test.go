package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// slowLive implements Live with simulated worlds in which operations take time. It records violations of the port's
// contract.
type slowLive struct {
	mu       sync.Mutex
	clusters map[string]*slowCluster // by namespace/name
	// lists returns the duration of a list. The list shows the state at its start.
	lists func() time.Duration
	// refuses, if set, returns the source that the nth list refuses. The first list is number 1.
	refuses func(n int) string
	// asks, if set, returns the source whose ancestry is not known yet at the nth list.
	asks    func(n int) string
	changes reconcile.Changes
	listed  int
	wrong   []string
	ended   bool
}

type slowCluster struct {
	name  string
	world *simulate.World
	// by is the source that declared the cluster in the last report.
	by string
	// looks and acts are the durations of observations and actions. Observing a cluster that hangs times out. From
	// observation number failsAt on, observing the cluster fails after 2.5 s.
	looks, acts time.Duration
	hangs       bool
	failsAt     int

	look     int
	looked   []time.Time
	acting   bool
	acted    time.Time
	actions  []string
	formedAt time.Time
	sources  []string
}

func slowClusters(names ...string) *slowLive {
	l := &slowLive{clusters: map[string]*slowCluster{}}
	for _, n := range names {
		_, name, _ := strings.Cut(n, "/")
		l.clusters[n] = &slowCluster{name: n, world: worldOf(name)}
	}
	return l
}

// slowSight is a cluster in the state returned by a list.
type slowSight struct {
	*slowCluster
	live  *slowLive
	at    time.Time
	state decide.State
}

func (l *slowLive) Observe(_ context.Context, desired reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listed++
	if l.refuses != nil && l.refuses(l.listed) != "" {
		desired = desired.Refused(l.refuses(l.listed), errors.New("it does not follow"))
	}
	if l.asks != nil && l.asks(l.listed) != "" {
		desired = desired.Refused(l.asks(l.listed), fmt.Errorf("look in the history: %w", reconcile.ErrReading))
	}
	var clusters []reconcile.Cluster
	for _, c := range l.clusters {
		c.world.Tick()
		clusters = append(clusters, &slowSight{c, l, time.Now(), c.world.Observe()})
	}
	if l.lists != nil {
		pause := l.lists()
		l.mu.Unlock()
		time.Sleep(pause)
		l.mu.Lock()
	}
	return reconcile.Observed{Desired: desired, Clusters: clusters}, nil
}

func (l *slowLive) Changes(context.Context) reconcile.Changes { return l.changes }
func (l *slowLive) Close(context.Context) error               { return nil }

// note records each entry of wrong that is true as a violation. Any operation after the end of the run is a violation,
// too.
func (c *slowSight) note(wrong map[string]bool) {
	wrong["after the end"] = c.live.ended
	for what, is := range wrong {
		if is {
			c.live.wrong = append(c.live.wrong, c.name+": "+what)
		}
	}
}

func (c *slowSight) Identity() (string, string) {
	namespace, name, _ := strings.Cut(c.name, "/")
	return namespace, name
}
func (c *slowSight) Warnings() []string                             { return nil }
func (c *slowSight) Custom() *v1alpha1.EtcdCluster                  { return nil }
func (c *slowSight) Changes(decide.Action) ([]report.Change, error) { return nil, nil }
func (c *slowSight) Leave(bool)                                     {}

func (c *slowSight) Unwell() bool       { return false }
func (c *slowSight) DeclaredBy() string { return c.by }

func (c *slowSight) State(ctx context.Context) (decide.State, error) {
	c.live.mu.Lock()
	c.note(map[string]bool{"looked at as it was before the last action ended": c.acted.After(c.at), "looked at while it is acted on": c.acting})
	c.look++
	c.looked = append(c.looked, time.Now())
	takes, fails := c.looks, c.failsAt > 0 && c.look >= c.failsAt
	c.live.mu.Unlock()
	if fails {
		takes = 2500 * time.Millisecond
	}
	if c.hangs {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return decide.State{}, context.Cause(ctx)
	}
	if fails {
		return c.state, errors.New("list pods: forbidden")
	}
	return c.state, nil
}

func (c *slowSight) Do(_ context.Context, action decide.Action) (report.Outcome, error) {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.note(map[string]bool{"acted on twice at once": c.acting})
	c.acting = true
	c.live.mu.Unlock()
	time.Sleep(c.acts)
	c.live.mu.Lock()
	writes := c.world.Do(action, simulate.NoCrash)
	c.actions = append(c.actions, action.String())
	c.acting, c.acted = false, time.Now()
	return report.Outcome{Changed: len(writes) > 0, Detail: strings.Join(writes, ", ")}, nil
}

func (c *slowSight) Report(_ context.Context, entry report.Cluster, source reconcile.SourceStatus) ([]report.News, error) {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	c.sources = append(c.sources, source.Source)
	if entry.Decision.Rule == decide.Converged && c.formedAt.IsZero() {
		c.formedAt = time.Now()
	}
	return nil, nil
}

// later is a source of which some declarations are known immediately, and others later.
type later struct {
	first, last reconcile.Desired
	takes       time.Duration
}

func (s later) Fetch(ctx context.Context, early func(reconcile.Desired)) reconcile.Desired {
	early(s.first)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
	}
	return s.last
}

func (s later) Follow(ctx context.Context, _ time.Duration, known func(reconcile.Desired)) {
	known(s.Fetch(ctx, known))
}

// end marks the end of the run and reports the violations.
func (l *slowLive) end(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	time.Sleep(2 * time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
}
