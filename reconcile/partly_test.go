package reconcile_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// partly is a live side of which one namespace cannot be listed.
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

// Where one namespace cannot be listed, as its owner may have it, all others are not listed each second for that.
func TestLoopBacksOffFromWhatItCannotList(t *testing.T) {
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
