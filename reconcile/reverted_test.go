package reconcile_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// undoing is a Live with a cluster that always needs the same action, because something, such as an admission webhook
// or another controller, keeps reverting it.
type undoing struct {
	events *events
	acts   []time.Time
}

// undone is the cluster of undoing.
type undone struct {
	fleetCluster
	live *undoing
}

func (u *undoing) Observe(_ context.Context, d reconcile.Desired, _ func(string) bool) (reconcile.Observed, error) {
	time.Sleep(20 * time.Millisecond)
	return reconcile.Observed{Desired: d, Clusters: []reconcile.Cluster{&undone{live: u}}}, nil
}

func (u *undoing) Changes(context.Context) reconcile.Changes { return u.events }
func (u *undoing) Close(context.Context) error               { return nil }

func (c *undone) Identity() (string, string) { return "ns", "a" }

func (c *undone) State(context.Context) (decide.State, error) {
	return simulate.New("a", decide.Declared{Replicas: 3, Lifecycle: "Running"}, 0).Observe(), nil
}

func (c *undone) Do(context.Context, decide.Action) (report.Outcome, error) {
	c.live.acts = append(c.live.acts, time.Now())
	c.live.events.tell("ns/a", true) // reverting the declaration also counts as a declaration change
	return report.Outcome{Changed: true, Detail: "applied EtcdCluster a"}, nil
}

// TestLoopBacksOffFromRevertedAction checks that an action that keeps being reverted is not repeated as fast as
// possible, and that a push is processed immediately.
func TestLoopBacksOffFromRevertedAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		u, git := &undoing{events: newEvents()}, &followed{next: make(chan reconcile.Desired, 1)}
		git.next <- revision("x")
		pushed := time.Now().Add(10*time.Minute + 10*time.Second)
		time.AfterFunc(time.Until(pushed), func() { git.next <- revision("y") })
		r := &reconcile.Reconciler{Source: git, Live: u, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		r.Loop(ctx, seldom)
		if n := len(u.acts); n < 20 || n > 50 {
			t.Errorf("it was done %d times within twenty minutes", n)
		}
		atOnce := false
		for _, at := range u.acts {
			atOnce = atOnce || !at.Before(pushed) && at.Before(pushed.Add(time.Second))
		}
		if !atOnce {
			t.Errorf("the push at %s had no immediate effect: %s", pushed, u.acts)
		}
	})
}
