package store

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
)

// maxIdle is the maximum number of requests and repeated names in a row without a new name. A store may return fewer
// names than requested, or none, and the library for Google Cloud Storage returns up to 1000 requests' names together.
const maxIdle = 2000

// errEndless is returned for a listing that does not end, for example because its continuation tokens form a circle.
var errEndless = fmt.Errorf("the store's list does not end: %d requests and repeated names without a new name", maxIdle)

// progress cancels a listing that returns nothing new. It counts requests where they are sent, because some libraries
// follow the continuation tokens of empty pages themselves.
type progress struct {
	context.Context
	idle   atomic.Int64
	cancel context.CancelCauseFunc
}

// watchProgress returns the context to list with. Call stop when the listing is complete.
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

// listed is called for each name.
func (p *progress) listed(isNew bool) {
	if !isNew {
		p.idled()
		return
	}
	p.idle.Store(0)
}

func (p *progress) stop() { p.cancel(nil) }

// explain returns the cause of an error: errEndless if the listing was canceled for that.
func (p *progress) explain(err error) error {
	if cause := context.Cause(p); errors.Is(cause, errEndless) {
		return cause
	}
	return err
}
