package sources

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/gitsource"
)

// TestCanceledRunStopsWaitingForTurn checks that a canceled run stops waiting for a turn.
func TestCanceledRunStopsWaitingForTurn(t *testing.T) {
	full := NewSlots(1)
	full.taken <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	cancel(over)
	_, err := full.Take(ctx, "x")
	if !errors.Is(err, gitsource.ErrSource) || !errors.Is(err, over) || !strings.Contains(err.Error(), "wait for a free slot to read x: it is over; raise limits.sourcesAtOnce") {
		t.Errorf("error %v", err)
	}
}

// TestInterruptedReadRestartsAtNextTurn checks that an interrupted read starts again at the source's next turn, which
// is twice as long. If no other source is waiting, a turn is not limited.
func TestInterruptedReadRestartsAtNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, began := NewSlots(1), time.Now()
		another := make(chan time.Duration, 1)
		go func() {
			time.Sleep(time.Second)
			end, _ := one.Take(t.Context(), "another")
			another <- time.Since(began)
			time.Sleep(time.Second)
			end()
		}()
		var turns []time.Duration
		err := one.Read(t.Context(), "x", func(ctx context.Context) error {
			begun := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			turns = append(turns, time.Since(begun))
			return ctx.Err()
		})
		if at := <-another; at != firstTimeSlice {
			t.Errorf("the other source got its turn after %s", at)
		}
		if err != nil || !slices.Equal(turns, []time.Duration{firstTimeSlice, time.Minute}) || len(one.taken) != 0 {
			t.Errorf("turns of %s, error %v", turns, err)
		}
	})
}
