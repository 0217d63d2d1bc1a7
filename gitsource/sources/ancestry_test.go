package sources

import (
	"errors"
	"fmt"
	"testing"

	"quorate.dev/quorate/reconcile"
)

// TestRememberedRevisionsAreBounded checks that the number of remembered revisions is limited, regardless of how many
// revisions statuses name, and that no history is read beyond the limit.
func TestRememberedRevisionsAreBounded(t *testing.T) {
	d := &ancestry{asked: map[string]*question{}, loops: true}
	for n := range mostAsked {
		d.asked[fmt.Sprint(n)] = &question{done: make(chan struct{})}
	}
	if _, err := d.descendsFrom(t.Context(), "main@sha1:abc"); !errors.Is(err, reconcile.ErrReading) || len(d.asked) != mostAsked {
		t.Errorf("beyond the bound: %v, %d are remembered", err, len(d.asked))
	}
	for _, q := range d.asked {
		close(q.done)
	}
	d.ask(t.Context(), "new")
	d.mu.Lock()
	q := d.asked["new"]
	if q == nil || len(d.asked) != 1 {
		t.Errorf("%d are remembered, and that which was asked: %t", len(d.asked), q != nil)
	}
	d.mu.Unlock()
	if q != nil {
		<-q.done
	}
}
