package store

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
)

// maxIdle is the maximum number of requests and repeated names in a row without a new name. It is large because a store
// may return fewer names than requested, or none, and because the library for Google Cloud Storage collects the names
// from up to 1000 requests before it returns them.
const maxIdle = 2000

// errEndless is returned for a list that does not end, for example because its continuation tokens form a cycle.
var errEndless = fmt.Errorf("the store's list does not end: no new names after %d requests and repeated names", maxIdle)

// progress cancels a list operation that no longer returns new names. It counts requests as they are sent, because some
// libraries follow the continuation tokens of empty pages on their own.
type progress struct {
	context.Context
	idle   atomic.Int64
	cancel context.CancelCauseFunc
}

// watchProgress returns the context for a list operation. The caller must call stop when the operation is complete.
func watchProgress(ctx context.Context) *progress {
	p := &progress{}
	ctx, p.cancel = context.WithCancelCause(ctx)
	p.Context = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { p.idled() }})
	return p
}

func (p *progress) idled() {
	if p.idle.Add(1) > maxIdle {
		p.cancel(errEndless)
	}
}

// listed must be called for each name in the list.
func (p *progress) listed(isNew bool) {
	if !isNew {
		p.idled()
		return
	}
	p.idle.Store(0)
}

func (p *progress) stop() { p.cancel(nil) }

// explain returns errEndless if the operation was canceled because the list does not end, and err otherwise.
func (p *progress) explain(err error) error {
	if cause := context.Cause(p); errors.Is(cause, errEndless) {
		return cause
	}
	return err
}
