package main

import (
	"context"
	"fmt"
	"time"

	"quorate.dev/quorate/gitsource"
)

// turns bounds how many sources are read at once: each takes memory. One that waits for its turn has not begun, so that nothing of its own time
// passes, and a turn lasts no longer than that time. Without turns there is no bound.
type turns chan struct{}

// toRead bounds reading so many sources, if they are several, to half of the time that the run has left: those that stall must not cost the others
// their time one after the other. A source that is not read by then is one that cannot be read: its clusters are kept as last applied, and that takes
// time, too.
func toRead(ctx context.Context, sources int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || sources < 2 {
		return context.WithCancel(ctx)
	}
	half := time.Until(end) / 2
	return context.WithTimeoutCause(ctx, half, fmt.Errorf("reading the sources has taken %s, half of the time that was left of --timeout; the rest is for the clusters",
		half.Round(time.Millisecond)))
}

// take waits for a turn to read what is at location. The error matches gitsource.ErrSource.
func (t turns) take(ctx context.Context, location string) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for the turn to read %s: %w; --sources-at-once allows more at once", gitsource.ErrSource, location, context.Cause(ctx))
	}
}
