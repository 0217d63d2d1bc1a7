package reconcile_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// partly is a Live in which one namespace cannot be listed.
type partly struct{ lists int }

func (p *partly) Observe(_ context.Context, d reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	if wanted == nil {
		p.lists++
	}
	return reconcile.Observed{Desired: d, Clusters: []reconcile.Cluster{&brief{name: "a", fails: true}},
		Unlisted: errors.New("too many requests")}, nil
}

func (*partly) Changes(context.Context) reconcile.Changes { return newEvents() }
func (*partly) Close(context.Context) error               { return nil }

// TestLoopBacksOffIfNamespaceCannotBeListed checks that a loop does not list all other namespaces every second if one
// namespace cannot be listed. The owner of that namespace may be able to cause this.
func TestLoopBacksOffIfNamespaceCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		p := &partly{}
		r := &reconcile.Reconciler{Source: &source{}, Live: p, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		r.Loop(ctx, seldom)
		if p.lists < 10 || p.lists > 30 {
			t.Errorf("listed %d times within ten minutes", p.lists)
		}
	})
}

// once is a Live that fails to list a namespace once, in a partial pass.
type once struct {
	*slowLive
	failed bool
	lists  int
}

func (o *once) Observe(ctx context.Context, d reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	seen, err := o.slowLive.Observe(ctx, d, wanted)
	if wanted == nil {
		o.lists++
	} else if !o.failed {
		o.failed, seen.Unlisted = true, errors.New("too many requests")
		seen.Clusters = slices.DeleteFunc(seen.Clusters, func(c reconcile.Cluster) bool {
			namespace, _ := c.Identity()
			return namespace == "other"
		})
	}
	return seen, err
}

// TestLoopRetriesUnlistedNamespaceSoon checks that a change in a namespace that could not be listed for a short time is
// processed soon, without waiting for the next regular full pass.
func TestLoopRetriesUnlistedNamespaceSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := slowClusters("ns/a", "other/b")
		reconciler(&source{}, inner).UntilConverged(t.Context())
		events, b := newEvents(), inner.clusters["other/b"]
		inner.changes, b.look = events, 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(10*time.Second, func() { events.tell("other/b", false) })
		l := &once{slowLive: inner}
		reconciler(&source{}, l).Loop(ctx, seldom)
		if !l.failed || b.look != 2 || l.lists != 2 {
			t.Errorf("failed %t: it looked %d times, and listed all %d times", l.failed, b.look, l.lists)
		}
		inner.end(t)
	})
}
