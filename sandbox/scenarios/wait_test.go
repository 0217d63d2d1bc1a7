package scenarios

import (
	"context"
	"testing"
	"time"
)

// patience is how long a fact may take to come true. It is generous: it is only ever spent by a
// test that fails.
const patience = 90 * time.Second

// eventually waits until check returns nil, and fails with its last error if that does not come
// true in time.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := poll(t.Context(), patience, check); err != nil {
		t.Fatalf("%s: not within %s: %v", what, patience, err)
	}
}

// poll asks check again and again until it returns nil; otherwise its last error.
func poll(ctx context.Context, timeout time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
