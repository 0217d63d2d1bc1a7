package reconcile

import (
	"context"
	"sync"
)

// FetchOnce reads a source only once and then always returns the same result, so that a run acts on the declarations
// that were planned.
type FetchOnce struct {
	Source
	once    sync.Once
	desired Desired
}

// Fetch reads all declarations on the first call, and returns the same declarations from then on.
func (h *FetchOnce) Fetch(ctx context.Context, early func(Desired)) Desired {
	h.once.Do(func() { h.desired = h.Source.Fetch(ctx, early) })
	return h.desired
}
