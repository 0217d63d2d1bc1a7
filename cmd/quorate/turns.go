package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
)

// turns bounds how many sources are read at once: each takes memory. One that waits for its turn
// has not begun, so that nothing of its own time passes. Without turns there is no bound.
type turns struct {
	places chan struct{}
	// first is how long the first turn of a source lasts while others wait for theirs; each later
	// one lasts twice as long as the one before. So those that answer are read soon, however many
	// do not, and one that takes long gets the time that it takes.
	first time.Duration
	// waiting are those that wait.
	waiting atomic.Int32
}

// firstTurn is long enough for most servers that answer, and short enough for those that wait
// beside one that does not.
const firstTurn = 5 * time.Second

func newTurns(n int) *turns { return &turns{places: make(chan struct{}, n), first: firstTurn} }

// toRead bounds reading so many sources, if they are several, to half of the time that the run has
// left: those that stall must not cost the others their time one after the other. A source that is
// not read by then is one that cannot be read: its clusters are kept as last applied, and that
// takes time, too.
func toRead(ctx context.Context, sources int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || sources < 2 {
		return context.WithCancel(ctx)
	}
	half := time.Until(end) / 2
	return context.WithTimeoutCause(ctx, half,
		fmt.Errorf("reading the sources has taken %s, half of the time that was left of --timeout; "+
			"the rest is for the clusters", half.Round(time.Millisecond)))
}

// read reads what is at location when it is its turn. If that is cut short for others, it begins
// again at its next turn.
func (t *turns) read(ctx context.Context, location string, read func(context.Context) error) error {
	if t == nil {
		return read(ctx)
	}
	for length := t.first; ; length *= 2 {
		end, err := t.take(ctx, location)
		if err != nil {
			return err
		}
		over, err := t.turn(ctx, length, read)
		end()
		if !over {
			return err
		}
	}
}

var errTurnOver = errors.New("its turn is over, and others wait for theirs")

// turn is one turn of a source, of that length if others wait. Over says that it was cut short.
func (t *turns) turn(
	ctx context.Context, length time.Duration, read func(context.Context) error,
) (over bool, err error) {
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for tick := time.NewTicker(length); ; {
			select {
			case <-turn.Done():
				tick.Stop()
				return
			case <-tick.C:
				if t.waiting.Load() > 0 {
					cancel(errTurnOver)
				}
			}
		}
	}()
	err = read(turn)
	return err != nil && errors.Is(context.Cause(turn), errTurnOver), err
}

// take waits for a turn to read what is at location. The error matches gitsource.ErrSource.
func (t *turns) take(ctx context.Context, location string) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case t.places <- struct{}{}:
		return func() { <-t.places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for the turn to read %s: %w; --sources-at-once allows more at once",
			gitsource.ErrSource, location, context.Cause(ctx))
	}
}
