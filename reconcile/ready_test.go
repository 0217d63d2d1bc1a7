package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// unlistable is a Live that cannot be listed completely for some time. Partial lists succeed.
type unlistable struct {
	*slowLive
	why         error
	since, till time.Time
}

func (u *unlistable) Observe(
	ctx context.Context, d reconcile.Desired, wanted func(string) bool,
) (reconcile.Observed, error) {
	if now := time.Now(); wanted == nil && now.After(u.since) && now.Before(u.till) {
		return reconcile.Observed{}, u.why
	}
	return u.slowLive.Observe(ctx, d, wanted)
}

// TestLoopIsNotReadyWhileListsFail checks that a loop that cannot list all clusters is not ready, whatever the reason
// and even if partial passes succeed in between. It becomes ready again once it can list all clusters.
func TestLoopIsNotReadyWhileListsFail(t *testing.T) {
	for _, why := range []error{
		reconcile.SetupError{Err: errors.New("list pods: forbidden")}, errors.New("connection refused"),
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, events := slowClusters("ns/a", "ns/b"), newEvents()
			inner.clusters["ns/a"].failsAt, inner.changes = 1, events
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			start := time.Now()
			r := reconciler(&source{}, &unlistable{inner, why, start.Add(time.Minute), start.Add(time.Hour)})
			often := seldom
			often.Resync = 5 * time.Minute
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Loop(ctx, often)
			}()
			for ctx.Err() == nil {
				events.tell("ns/b", false)
				time.Sleep(700 * time.Millisecond)
				if after := time.Since(start); r.Ready() && after > 6*time.Minute && after < time.Hour {
					t.Errorf("%v: it is ready after %s", why, after)
					cancel()
				}
			}
			if !r.Ready() && !t.Failed() {
				t.Errorf("%v: it is not ready once all can be listed again", why)
			}
			<-ended
		})
	}
}
