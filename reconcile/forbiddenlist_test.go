package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// forbidden is a Live that cannot be listed from a certain time on.
type forbidden struct {
	*slowLive
	from  time.Time
	asked int
	stop  context.CancelFunc
}

func (l *forbidden) Observe(
	ctx context.Context, desired reconcile.Desired, wanted func(string) bool,
) (reconcile.Observed, error) {
	if time.Now().Before(l.from) {
		return l.slowLive.Observe(ctx, desired, wanted)
	}
	if l.asked++; l.asked > 100 {
		l.stop()
	}
	return reconcile.Observed{Desired: desired}, reconcile.SetupError{Err: errors.New("list pods: forbidden")}
}

// TestForbiddenListIsNotRetriedAtOnce checks that there is a pause before due or changed clusters are retried if
// nothing can be listed. A run that is not a loop returns the error.
func TestForbiddenListIsNotRetriedAtOnce(t *testing.T) {
	for _, loops := range []bool{false, true} {
		for _, changes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				inner := slowClusters("ns/a", "ns/waits")
				inner.clusters["ns/waits"].world.LockHolder = "process 7 on elsewhere"
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				l := &forbidden{inner, time.Now().Add(7500 * time.Millisecond), 0, cancel}
				if changes {
					events := newEvents()
					inner.changes = events
					time.AfterFunc(8*time.Second, func() { events.tell("ns/waits", true) })
				}
				if loops {
					reconciler(&source{}, l).Loop(ctx, seldom)
				} else if rep, _ := reconciler(&source{}, l).UntilConverged(ctx); rep.Error == "" || ctx.Err() != nil {
					t.Errorf("it did not end with an error: %q", rep.Error)
				}
				if l.asked == 0 || l.asked > 1+60/5+3 {
					t.Errorf("loops %t, changes %t: it asked %d times in a minute", loops, changes, l.asked)
				}
				inner.end(t)
			})
		}
	}
}
