package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
)

// turns bounds how many sources are read at once: each takes memory. One that waits for its turn has not begun, so that nothing of its own time
// passes, and a turn lasts no longer than that time. Without turns there is no bound.
type turns struct {
	places chan struct{}
	// first is how long the first turn of a source lasts while there are others that have had none.
	first time.Duration
	// fresh are those that wait for their first one.
	fresh atomic.Int32
}

// firstTurn is long enough for a server that answers, and short enough for those that wait beside one that does not.
const firstTurn = 5 * time.Second

func newTurns(n int) *turns { return &turns{places: make(chan struct{}, n), first: firstTurn} }

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

// read reads what is at location when it is its turn. If that is cut short for those that have had no turn, it begins again once they have.
func (t *turns) read(ctx context.Context, location string, read func(context.Context) error) error {
	if t == nil {
		return read(ctx)
	}
	t.fresh.Add(1)
	end, err := t.take(ctx, location)
	t.fresh.Add(-1)
	if err != nil {
		return err
	}
	over, err := t.firstOf(ctx, read)
	end()
	if !over {
		return err
	}
	if end, err = t.take(ctx, location); err != nil {
		return err
	}
	defer end()
	return read(ctx)
}

var errTurnOver = errors.New("others have had no turn")

// firstOf is the first turn of a source. Over says that it was cut short.
func (t *turns) firstOf(ctx context.Context, read func(context.Context) error) (over bool, err error) {
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(t.first, func() {
		if t.fresh.Load() > 0 {
			cancel(errTurnOver)
		}
	})
	defer limit.Stop()
	err = read(turn)
	return err != nil && errors.Is(context.Cause(turn), errTurnOver), err
}

// take waits for a turn to read what is at location. The error matches gitsource.ErrSource.
func (t *turns) take(ctx context.Context, location string) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for the turn to read %s: %w; --sources-at-once allows more at once", gitsource.ErrSource, location, context.Cause(ctx))
	}
}
