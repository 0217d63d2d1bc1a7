package sources

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/reconcile"
)

// descendant returns a source, its current revision, and an earlier revision.
func descendant(t *testing.T) (s Source, newer refs.Revision, older string) {
	repository := gittest.NewRepository(t)
	older = "main@sha1:" + repository.Declare("a")
	return at(repository.Dir), refs.Revision{Commit: repository.Declare("b")}, older
}

// TestPatienceBeginsWithSlot checks that passes wait for a quick history check, even if the source has to wait for a
// slot first. The wait for the slot is limited, and does not count toward the time limit of the check.
func TestPatienceBeginsWithSlot(t *testing.T) {
	s, newer, older := descendant(t)
	s.Timeout = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(1)
		for _, wait := range []time.Duration{3 * time.Second, time.Minute} {
			end, err := slots.Take(t.Context(), "another")
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(wait, end)
			d, begun := newAncestry(s, slots, newer, time.Now()), time.Now()
			follows, err := d.descendsFrom(t.Context(), older)
			took := time.Since(begun)
			if wait < slotPatience {
				if !follows || err != nil || took != wait {
					t.Errorf("%t, %v, after %s", follows, err, took)
				}
				continue
			}
			if !errors.Is(err, reconcile.ErrReading) || took != slotPatience {
				t.Errorf("without a slot: %v, after %s", err, took)
			}
			time.Sleep(wait)
			synctest.Wait()
			if follows, err := d.descendsFrom(t.Context(), older); !follows || err != nil {
				t.Errorf("once it has a slot: %t, %v", follows, err)
			}
		}
	})
}

// TestNewRevisionEndsSearch checks that reading a different revision ends the history search for the previous one, and
// that its ancestry then counts as unknown. Passes do not wait again for the new revision.
func TestNewRevisionEndsSearch(t *testing.T) {
	s, newer, older := descendant(t)
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(1)
		end, err := slots.Take(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		first := newAncestry(s, slots, refs.Revision{Commit: "0"}, time.Now())
		first.descendsFrom(t.Context(), older)
		second, _ := first.next(newAncestry(s, slots, newer, time.Now()))
		begun := time.Now()
		for _, d := range []*ancestry{first, second} {
			if _, err := d.descendsFrom(t.Context(), older); !errors.Is(err, reconcile.ErrReading) {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("waited for %s", took)
		}
		end()
		synctest.Wait()
		if follows, err := second.descendsFrom(t.Context(), older); !follows || err != nil {
			t.Errorf("%t, %v", follows, err)
		}
	})
}

// TestRememberedRevisionsAreBounded checks that the number of remembered revisions is limited, regardless of how many
// revisions the statuses contain, and that no history is read once the limit is reached.
func TestRememberedRevisionsAreBounded(t *testing.T) {
	d := &ancestry{asked: map[string]*question{}, loops: true}
	for n := range mostAsked {
		d.asked[fmt.Sprint(n)] = &question{done: make(chan struct{})}
	}
	if _, err := d.descendsFrom(t.Context(), "main@sha1:abc"); !errors.Is(err, reconcile.ErrReading) || len(d.asked) != mostAsked {
		t.Errorf("over the limit: %v, %d revisions are remembered", err, len(d.asked))
	}
	for _, q := range d.asked {
		close(q.done)
	}
	d.ask(t.Context(), "new")
	d.mu.Lock()
	q := d.asked["new"]
	if q == nil || len(d.asked) != 1 {
		t.Errorf("%d revisions are remembered, including the new one: %t", len(d.asked), q != nil)
	}
	d.mu.Unlock()
	if q != nil {
		<-q.done
	}
}
