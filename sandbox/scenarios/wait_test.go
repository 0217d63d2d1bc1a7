package scenarios

import (
	"context"
	"testing"
	"time"
)

// patience is the maximum time to wait for a condition. It is generous, because only failing tests wait that long.
const patience = 90 * time.Second

// eventually waits until check returns nil. On timeout, it fails the test with the last error from check.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	if err := poll(t.Context(), patience, check); err != nil {
		t.Fatalf("%s: not within %s: %v", what, patience, err)
	}
}

// poll calls check repeatedly until it returns nil. On timeout, it returns the last error from check.
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
