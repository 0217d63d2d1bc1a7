package main

import (
	"context"
	"fmt"

	"quorate.dev/quorate/gitsource"
)

// turns bounds how many sources are read at once: each takes memory. One that waits for its turn has not begun, so that nothing of its own time
// passes, and a turn lasts no longer than that time. Without turns there is no bound.
type turns chan struct{}

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
