// Package sources reads several sources at the same time.
package sources

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
)

// Slots limits the number of sources that are read at the same time, because each read uses memory. The time that a
// source waits for its turn does not count toward its timeout. A nil Slots means no limit.
type Slots struct {
	taken chan struct{}
	// First is the length of a source's first turn while other sources are waiting. Each later turn is twice as long as
	// the previous one. This way, responsive sources are read soon even if many others hang, and slow sources
	// eventually get enough time.
	First time.Duration
	// waiting is the number of sources that are waiting for a turn.
	waiting atomic.Int32
}

// firstTimeSlice is long enough for most responsive servers, and short enough for sources that are waiting behind an
// unresponsive server.
const firstTimeSlice = 5 * time.Second

// NewSlots returns slots for reading n sources at the same time.
func NewSlots(n int) *Slots {
	return &Slots{taken: make(chan struct{}, n), First: firstTimeSlice}
}

// WithReadTime limits reading several sources to half of the run's remaining time, so that stalled sources do not use
// up the time that the clusters need. Sources that have not been read by then count as unreadable. Their clusters keep
// the last applied state, which takes time to process as well.
func WithReadTime(ctx context.Context, sources int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || sources < 2 {
		return context.WithCancel(ctx)
	}
	half := time.Until(end) / 2
	return context.WithTimeoutCause(ctx, half,
		fmt.Errorf("reading the sources has taken %s, half of the remaining --timeout; "+
			"the rest is reserved for the clusters", half.Round(time.Millisecond)))
}

// Read waits for a turn and reads the source at location. If the turn is cut short because other sources are waiting,
// the read starts again at the next turn.
func (t *Slots) Read(ctx context.Context, location string, read func(context.Context) error) error {
	if t == nil {
		return read(ctx)
	}
	for length := t.First; ; length *= 2 {
		end, err := t.Take(ctx, location)
		if err != nil {
			return err
		}
		over, err := t.timeSlice(ctx, length, read)
		end()
		if !over {
			return err
		}
	}
}

var errTurnOver = errors.New("its turn is over, and other sources are waiting")

// timeSlice runs one turn of a source. It ends the turn after length if other sources are waiting. over reports whether
// the turn was cut short.
func (t *Slots) timeSlice(
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

// Take waits for a turn to read the source at location. The caller must call end when the turn is over. The error
// matches gitsource.ErrSource.
func (t *Slots) Take(ctx context.Context, location string) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait for a free slot to read %s: %w; raise limits.sourcesAtOnce",
			gitsource.ErrSource, location, context.Cause(ctx))
	}
}
