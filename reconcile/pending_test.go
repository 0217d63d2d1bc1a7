package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
)

// lookedAt is a Live that records when it is observed. It can fail in one pass.
type lookedAt struct {
	*slowLive
	start time.Time
	when  []time.Duration
	// forbidden is the number of the pass in which a required right is missing, or 0 if it is never missing.
	forbidden int
}

func (l *lookedAt) Observe(ctx context.Context, d reconcile.Desired, wanted func(string) bool) (reconcile.Observed, error) {
	l.when = append(l.when, time.Since(l.start))
	if len(l.when) == l.forbidden {
		return reconcile.Observed{}, reconcile.SetupError{Err: errors.New("pods is forbidden")}
	}
	return l.slowLive.Observe(ctx, d, wanted)
}

// requireOften runs until all clusters have converged, and fails the test if there is a long period without any
// observation before that.
func (l *lookedAt) requireOften(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	reconciler(&source{}, l).UntilConverged(ctx)
	for i := 1; i < len(l.when); i++ {
		if gap := l.when[i] - l.when[i-1]; gap > 10*time.Second {
			t.Errorf("no cluster was inspected for %s after pass %d", gap, i)
		}
	}
}

// TestLostRightsKeepPendingClusters checks that a run remembers pending clusters if it loses a right during a partial
// pass.
func TestLostRightsKeepPendingClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/b")
		reconciler(&source{}, l).UntilConverged(t.Context())
		l.clusters["ns/a"].world.Declared.SpecHash = "h2"
		l.lists = func() time.Duration { return 3 * time.Second } // a large fleet
		(&lookedAt{slowLive: l, start: time.Now(), forbidden: 3}).requireOften(t)
	})
}

// TestLateChangeIsObservedSoon checks that a converged slow cluster is observed again soon if its last observation,
// just before the end of the run, shows that something is left to do.
func TestLateChangeIsObservedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/b")
		reconciler(&source{}, l).UntilConverged(t.Context())
		a := l.clusters["ns/a"]
		a.looks = 3 * time.Second
		time.AfterFunc(5*time.Second, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			a.world.Declared.SpecHash = "h2"
		})
		(&lookedAt{slowLive: l, start: time.Now()}).requireOften(t)
	})
}
