package sources

import (
	"errors"
	"sync"

	"quorate.dev/quorate/gitsource"
)

// Shared reads each source only once, even if it is requested several times. A nil Shared reads the source on every
// request.
type Shared struct {
	mu  sync.Mutex
	all map[string]*sharedFetch
}

// sharedFetch is a source that has been read or is being read.
type sharedFetch struct {
	once    sync.Once
	desired gitsource.Desired
	err     error
}

// Once reads the named source unless it has already been read. Concurrent callers wait for the result. The caller owns
// the returned value.
func (r *Shared) Once(name string, read func() (gitsource.Desired, error)) (gitsource.Desired, error) {
	if r == nil {
		return read()
	}
	r.mu.Lock()
	if r.all == nil {
		r.all = map[string]*sharedFetch{}
	}
	one := r.all[name]
	if one == nil {
		one = &sharedFetch{err: errors.New("the read was interrupted")} // replaced when read returns
		r.all[name] = one
	}
	r.mu.Unlock()
	one.once.Do(func() { one.desired, one.err = read() })
	return one.desired.Clone(), one.err
}
