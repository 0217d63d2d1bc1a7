package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile"
)

// ancestryPatience is the maximum total time for which passes wait for the history of one source. A longer check
// continues in the background and does not delay the clusters of other sources.
const ancestryPatience = time.Second

// mostAsked is the maximum number of revisions remembered per source. Revisions come from statuses, and anyone who may
// write a status could name new revisions indefinitely.
const mostAsked = 4096

// ancestry determines which revisions are ancestors of the revision that was read. It checks each revision once, one
// after the other. The fetch timeout applies to all checks together or, in a loop, to each check.
type ancestry struct {
	source Source
	slots  *Slots
	read   refs.Revision
	// loops is set if the source is read repeatedly, in which case another process may have read a newer revision.
	loops bool

	mu    sync.Mutex
	asked map[string]*question
	// unanswered contains the times at which the questions to an earlier ancestry were first asked. The earlier
	// ancestry could not answer all of its questions.
	unanswered map[string]time.Time
	// since is when the first question was asked. confirmed is the start time of the last read that found the source
	// at the same revision.
	since, confirmed time.Time
	// asking is held while a question is being answered.
	asking sync.Mutex
}

// question asks whether the revision descends from a commit. It is answered once done is closed.
type question struct {
	// asked is when the question was first asked.
	asked   time.Time
	done    chan struct{}
	follows bool
	err     error
}

// newAncestry returns the ancestry of the revision that a source was read at, or nil if the ancestry does not matter.
func newAncestry(s Source, slots *Slots, read refs.Revision) *ancestry {
	if s.AllowNonFastForward || read.Commit == "" {
		return nil
	}
	return &ancestry{source: s, slots: slots, read: read, asked: map[string]*question{}}
}

// failed reports whether any question has failed and should be asked again.
func (d *ancestry) failed() bool {
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

// descendsFrom implements reconcile.State.Follows. The error matches reconcile.ErrReading if the answer takes longer
// than passes wait.
func (d *ancestry) descendsFrom(ctx context.Context, text string) (bool, error) {
	older, _ := revision.Parse(text)
	before := older.Hash()
	if before == "" || before == d.read.Commit { // a directory has no history
		return true, nil
	}
	q, patience := d.ask(ctx, before)
	select {
	case <-q.done:
	case <-patience.Done():
		select {
		case <-q.done:
		default:
			return false, fmt.Errorf("check whether the revision of %s descends from %s: %w", d.source.Location,
				text, reconcile.ErrReading)
		}
	}
	if d.loops && !q.follows && !d.isConfirmedSince(q.asked) {
		return false, fmt.Errorf("reread %s, which another process may have read at %s: %w",
			d.source.Location, text, reconcile.ErrReading)
	}
	return q.follows, q.err
}

// confirm records that a read found the source at the same revision. began is when the read started.
func (d *ancestry) confirm(began time.Time) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = began
}

// takeOver records when the questions of an earlier ancestry were first asked, and when its revision was last
// confirmed.
func (d *ancestry) takeOver(from *ancestry) {
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

func (d *ancestry) isConfirmedSince(asked time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed.After(asked)
}

// ask asks whether the revision descends from a commit, unless that has already been asked. It also returns a context
// that bounds the wait for the answer.
func (d *ancestry) ask(ctx context.Context, before string) (q *question, patience context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = time.Now()
	}
	patience, cancel := context.WithDeadline(ctx, d.since.Add(ancestryPatience))
	context.AfterFunc(patience, cancel)
	if q = d.asked[before]; q == nil {
		q = &question{asked: time.Now(), done: make(chan struct{})}
		if d.forgetAnswered(); len(d.asked) >= mostAsked {
			q.err = fmt.Errorf("the history of %s is being searched for %d other revisions: %w",
				d.source.Location, len(d.asked), reconcile.ErrReading)
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

// forgetAnswered removes answered questions if the limit is reached. They may be asked again.
func (d *ancestry) forgetAnswered() {
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

func (d *ancestry) answer(ctx context.Context, before string, q *question) {
	defer close(q.done)
	since := d.since
	if d.loops {
		since = time.Now() // the revision may have been the newest for hours
	}
	ctx, cancel := context.WithDeadlineCause(ctx, since.Add(d.source.Timeout),
		fmt.Errorf("searching the history took longer than %s; raise sourceDefaults.timeout", d.source.Timeout))
	defer cancel()
	d.asking.Lock()
	defer d.asking.Unlock()
	q.err = panics.Catch(func() error {
		options, err := d.source.Options()
		if err != nil {
			return err
		}
		return d.slots.Read(ctx, d.source.Location, func(ctx context.Context) (err error) {
			q.follows, err = gitsource.Descends(ctx, options, d.read, before)
			return err
		})
	})
	if errors.Is(q.err, history.ErrGone) {
		q.err = fmt.Errorf("%w: %w", reconcile.ErrGone, q.err)
	}
}
