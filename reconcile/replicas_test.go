package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// replica is one of two processes that manage the same clusters. Each cluster has a lease.
type replica struct {
	*slowLive
	name   string
	leases map[string]lease // guarded by slowLive.mu
	acts   int
}

type lease struct {
	holder  string
	expires time.Time
}

const leaseDuration = 15 * time.Second

// contended is a cluster with its lease, as listed by one of the processes.
type contended struct {
	*slowSight
	replica *replica
	lease   lease
}

func (r *replica) Observe(ctx context.Context, desired reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	observed, err := r.slowLive.Observe(ctx, desired, wanted)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range observed.Clusters {
		sight := c.(*slowSight)
		observed.Clusters[i] = &contended{sight, r, r.leases[sight.name]}
	}
	return observed, err
}

func (c *contended) State(ctx context.Context) (decide.State, error) {
	state, err := c.slowSight.State(ctx)
	if c.lease.holder != c.replica.name && time.Now().Before(c.lease.expires) {
		state.LockHolder = c.lease.holder + " holds the lease"
	}
	return state, err
}

func (c *contended) Do(ctx context.Context, action decide.Action) (report.Outcome, error) {
	r := c.replica
	r.mu.Lock()
	if r.leases[c.name] != c.lease {
		r.mu.Unlock()
		return report.Outcome{}, fmt.Errorf("%w: it took the lease meanwhile", reconcile.ErrLocked)
	}
	r.leases[c.name] = lease{r.name, time.Now().Add(leaseDuration)}
	r.acts++
	r.mu.Unlock()
	return c.slowSight.Do(ctx, action)
}

// TestTwoLoopsNeverActTogether checks that two loops over the same clusters bootstrap all clusters without ever acting
// on the same cluster at the same time, whether they share the work or one is on standby. After one loop has stopped,
// the other manages all clusters.
func TestTwoLoopsNeverActTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names, contents []string
		for i := range 10 {
			names, contents = append(names, "ns/"+string(rune('a'+i))), append(contents, "x")
		}
		shared := slowClusters(names...)
		shared.changes = newEvents()
		for _, c := range shared.clusters {
			c.looks, c.acts = 10*time.Millisecond, 50*time.Millisecond
		}
		leases := map[string]lease{}
		var replicas []*replica
		var stops []func()
		for _, name := range []string{"one", "two"} {
			r := &replica{slowLive: shared, name: name, leases: leases}
			git := &followed{next: make(chan reconcile.Desired, 1)}
			git.next <- revision(contents...)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				often := seldom
				often.Etcd, often.Lease = 30*time.Second, leaseDuration
				reconciler(git, r).Loop(ctx, often)
			}()
			replicas, stops = append(replicas, r), append(stops, func() { stop(); <-ended })
		}
		time.Sleep(5 * time.Minute)
		shared.mu.Lock()
		for _, c := range shared.clusters {
			if c.formedAt.IsZero() {
				t.Errorf("%s has not been founded: %q", c.name, c.actions)
			}
			c.world.Declared.SpecHash, c.actions = "h2", nil
		}
		before := replicas[1].acts
		shared.mu.Unlock()
		stops[0]()
		time.Sleep(5 * time.Minute)
		shared.mu.Lock()
		for _, c := range shared.clusters {
			if len(c.actions) == 0 || replicas[1].acts == before {
				t.Errorf("%s was left unchanged by the remaining process", c.name)
			}
		}
		shared.wrong = slices.DeleteFunc(shared.wrong, func(what string) bool { return !strings.Contains(what, "twice") })
		shared.mu.Unlock()
		stops[1]()
		shared.wrong = slices.DeleteFunc(shared.wrong, func(what string) bool { return !strings.Contains(what, "twice") })
		shared.end(t)
	})
}
