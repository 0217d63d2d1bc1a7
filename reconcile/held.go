package reconcile

import (
	"context"
	"sync"
)

// Held reads a source once: however often it is asked, it gives what it gave at first, so that what is done is what
// was planned.
type Held struct {
	Source
	once    sync.Once
	desired Desired
}

// Fetch reads all declarations at the first call, and gives the same ones from then on.
func (h *Held) Fetch(ctx context.Context, early func(Desired)) Desired {
	h.once.Do(func() { h.desired = h.Source.Fetch(ctx, early) })
	return h.desired
}
