package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/panics"
)

// descentPatience is how long passes wait in all for the history of one source. What takes longer
// goes on beside them, and holds up nobody else's clusters.
const descentPatience = time.Second

// mostAsked bounds how many revisions are remembered whose place in the history of one source was asked for: a status
// names them, and whoever may write one may name a new one each time.
const mostAsked = 4096

// descent tells which revisions the one that was read descends from. It asks once for each, one
// after the other, and for as long in all as reading the source may take; in a loop, for as long each time.
type descent struct {
	source source
	read   refs.Revision
	// loops: the source is read again and again, and another process that does so may have been faster.
	loops bool

	mu    sync.Mutex
	asked map[string]*question
	// unanswered is when questions were first asked of an earlier descent, some of which it could not answer.
	unanswered map[string]time.Time
	// since is when the first question was asked, and confirmed when the revision was last found to be that of
	// the source still.
	since, confirmed time.Time
	// asking is held while one of them is being answered.
	asking sync.Mutex
}

// question is whether what was read descends from a commit. It is answered once done is closed.
type question struct {
	// asked is when it was first asked.
	asked   time.Time
	done    chan struct{}
	follows bool
	err     error
}

// descentOf returns what tells whether a revision follows another; nil where that does not matter.
func (s source) descentOf(read refs.Revision) *descent {
	if s.allowNonFastForward || read.Commit == "" {
		return nil
	}
	return &descent{source: s, read: read, asked: map[string]*question{}}
}

// failed reports whether some answer could not be had, so that it is worth it to ask again.
func (d *descent) failed() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.asked {
		select {
		case <-q.done:
			if q.err != nil {
				return true
			}
		default:
		}
	}
	return false
}

// follows implements reconcile.Place.Follows. The error matches reconcile.ErrReading as long as the
// answer takes more than passes wait for.
func (d *descent) follows(ctx context.Context, revision string) (bool, error) {
	_, before, ok := strings.Cut(revision, "sha1:")
	if !ok || before == d.read.Commit { // what a directory declared has no place in a history
		return true, nil
	}
	q, patience := d.ask(ctx, before)
	select {
	case <-q.done:
	case <-patience.Done():
		select {
		case <-q.done:
		default:
			return false, fmt.Errorf("look in the history of %s whether it descends from %s: %w", d.source.location,
				revision, reconcile.ErrReading)
		}
	}
	if d.loops && !q.follows && !d.isConfirmedSince(q.asked) {
		return false, fmt.Errorf("read %s again, which another process may have found at %s since: %w",
			d.source.location, revision, reconcile.ErrReading)
	}
	return q.follows, q.err
}

// confirm notes that the source was at the revision still when it was read from then on.
func (d *descent) confirm(began time.Time) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = began
}

// takeOver goes on with the questions of an earlier descent, as asked when they first were.
func (d *descent) takeOver(from *descent) {
	if d == nil {
		return
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	d.confirmed, d.unanswered = from.confirmed, map[string]time.Time{}
	for before, q := range from.asked {
		d.unanswered[before] = q.asked
	}
}

func (d *descent) isConfirmedSince(asked time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed.After(asked)
}

// ask asks whether what was read descends from a commit, if nobody has. It returns how long to wait
// for the answer.
func (d *descent) ask(ctx context.Context, before string) (q *question, patience context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = time.Now()
	}
	patience, cancel := context.WithDeadline(ctx, d.since.Add(descentPatience))
	context.AfterFunc(patience, cancel)
	if q = d.asked[before]; q == nil {
		q = &question{asked: time.Now(), done: make(chan struct{})}
		if d.forgetAnswered(); len(d.asked) >= mostAsked {
			q.err = fmt.Errorf("the history of %s is being looked through for %d other revisions: %w",
				d.source.location, len(d.asked), reconcile.ErrReading)
			close(q.done)
			return q, patience
		}
		if first, again := d.unanswered[before]; again {
			q.asked = first
		}
		d.asked[before] = q
		go d.answer(ctx, before, q)
	}
	return q, patience
}

// forgetAnswered makes room for other questions, where there are as many as may be. What is forgotten is asked again.
func (d *descent) forgetAnswered() {
	if len(d.asked) < mostAsked {
		return
	}
	maps.DeleteFunc(d.asked, func(_ string, q *question) bool {
		select {
		case <-q.done:
			return true
		default:
			return false
		}
	})
}

func (d *descent) answer(ctx context.Context, before string, q *question) {
	defer close(q.done)
	since := d.since
	if d.loops {
		since = time.Now() // the revision may have been the newest one for hours
	}
	ctx, cancel := context.WithDeadlineCause(ctx, since.Add(d.source.timeout),
		fmt.Errorf("looking through the history took longer than %s; --fetch-timeout allows more", d.source.timeout))
	defer cancel()
	d.asking.Lock()
	defer d.asking.Unlock()
	q.err = panics.Catch(func() error {
		options, err := d.source.options()
		if err != nil {
			return err
		}
		return d.source.turns.read(ctx, d.source.location, func(ctx context.Context) (err error) {
			q.follows, err = gitsource.Descends(ctx, options, d.read, before)
			return err
		})
	})
	if errors.Is(q.err, history.ErrGone) {
		q.err = fmt.Errorf("%w: %w", reconcile.ErrGone, q.err)
	}
}
