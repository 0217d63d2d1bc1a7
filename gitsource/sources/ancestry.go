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

const (
	// ancestryPatience limits how long passes wait, in total, for the history checks of one source. It starts when the
	// source gets a slot. Slower checks continue in the background, so that they do not delay clusters of other
	// sources.
	ancestryPatience = time.Second
	// slotPatience limits how long passes wait for a source to get a slot. Sources wait for slots concurrently.
	slotPatience = 5 * time.Second
)

// mostAsked is the maximum number of revisions remembered per source. Revisions come from cluster statuses, so anyone
// who may write a status could otherwise add any number of them.
const mostAsked = 4096

// ancestry determines which revisions are ancestors of the revision that was read. It checks each revision once, and
// only one at a time. The fetch timeout applies to all checks together or, in a loop, to each check.
type ancestry struct {
	source Source
	slots  *Slots
	read   refs.Revision
	// loops is set if the source is read repeatedly. Another process may then have read a newer revision.
	loops bool

	mu    sync.Mutex
	asked map[string]*question
	// first holds, for each question that will be asked again, the time at which it was first asked. These are
	// questions about the ancestry of an earlier revision, and questions that could not be answered.
	first map[string]time.Time
	// since is the time of the first question. turn is the time at which the source got a slot; begun is then closed.
	since, turn time.Time
	begun       chan struct{}
	// late is set while answers take longer than passes wait. Passes then use only answers that are already available.
	late bool
	// confirmed is the start time of the last read that returned this revision.
	confirmed time.Time
	// asking is held while a question is being answered.
	asking sync.Mutex
}

// question asks whether the revision descends from a commit. done is closed once it is answered.
type question struct {
	// asked is the time at which the question was first asked.
	asked time.Time
	done  chan struct{}
	// cancel stops the search for the answer. canceled is set if a different revision was read before the search ended.
	cancel   context.CancelFunc
	canceled bool
	follows  bool
	// err matches reconcile.ErrReading if the search was canceled.
	err error
}

// newAncestry returns the ancestry of the revision that was read, or nil if ancestry does not matter. began is the time
// at which reading started.
func newAncestry(s Source, slots *Slots, read refs.Revision, began time.Time) *ancestry {
	if s.AllowNonFastForward || read.Commit == "" {
		return nil
	}
	return &ancestry{source: s, slots: slots, read: read, asked: map[string]*question{}, confirmed: began}
}

// next returns the ancestry to use after the source has been read again. If the revision has not changed, next keeps
// the answers, and again reports whether any unanswered question will be asked again.
func (d *ancestry) next(read *ancestry) (_ *ancestry, again bool) {
	switch {
	case d == nil || read == nil:
		return read, false
	case d.read != read.read:
		read.takeOver(d)
		return read, false
	}
	return d, d.confirm(read.confirmed)
}

// confirm records that a read returned the same revision, and removes questions that could not be answered, so that
// they are asked again. began is the time at which the read started.
func (d *ancestry) confirm(began time.Time) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = began
	for before, q := range d.asked {
		if q.isDone() && q.err != nil {
			d.remember(before, q.asked)
			delete(d.asked, before)
			again = true
		}
	}
	return again
}

// takeOver keeps the times at which questions about the ancestry of an earlier revision were first asked, and cancels
// the searches for their answers. A read that started after a revision was applied returns that revision or its
// replacement, even if the source has changed several times since.
func (d *ancestry) takeOver(from *ancestry) {
	from.mu.Lock()
	defer from.mu.Unlock()
	d.late = from.late
	if len(from.asked) == 0 { // no pass has used that revision
		d.first = maps.Clone(from.first)
	}
	for before, q := range from.asked {
		d.remember(before, q.asked)
		q.canceled = true
		q.cancel()
	}
}

// remember records when a question was first asked.
func (d *ancestry) remember(before string, asked time.Time) {
	if d.first == nil || len(d.first) >= mostAsked {
		d.first = map[string]time.Time{}
	}
	d.first[before] = asked
}

// descendsFrom implements reconcile.SourceState.Follows. The error matches reconcile.ErrReading if the answer is not
// available in time.
func (d *ancestry) descendsFrom(ctx context.Context, text string) (bool, error) {
	older, _ := revision.Parse(text)
	before := older.Hash()
	if before == "" || before == d.read.Commit { // or the source has no revisions
		return true, nil
	}
	q := d.ask(ctx, before)
	// Another process may have read a newer revision: only a later read shows that this revision does not follow.
	if q == nil || !d.wait(ctx, q) || errors.Is(q.err, reconcile.ErrReading) ||
		d.loops && !q.follows && !d.isConfirmedSince(q.asked) {
		return false, fmt.Errorf("check whether the revision of %s descends from %s: %w", d.source.Location, text,
			reconcile.ErrReading)
	}
	return q.follows, q.err
}

// wait waits for the answer to a question for at most the time that passes wait for the source.
func (d *ancestry) wait(ctx context.Context, q *question) (answered bool) {
	d.mu.Lock()
	late, end, begun := d.late, d.since.Add(slotPatience), d.begun
	d.mu.Unlock()
	if !late {
		q.wait(ctx, end, begun)
		d.mu.Lock()
		end = d.turn.Add(ancestryPatience) // in the past if the source does not have a slot yet
		d.mu.Unlock()
		q.wait(ctx, end, nil)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = !q.isDone()
	return !d.late
}

// wait waits until the question is answered, end has passed, or begun, which may be nil, is closed.
func (q *question) wait(ctx context.Context, end time.Time, begun <-chan struct{}) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	select {
	case <-q.done:
	case <-begun:
	case <-ctx.Done():
	}
}

func (q *question) isDone() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

func (d *ancestry) isConfirmedSince(asked time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed.After(asked)
}

// ask asks whether the revision descends from a commit, unless that question has already been asked. It returns nil if
// too many other questions are still unanswered.
func (d *ancestry) ask(ctx context.Context, before string) *question {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun == nil {
		d.since, d.begun = time.Now(), make(chan struct{})
	}
	if q := d.asked[before]; q != nil {
		return q
	}
	if d.forgetAnswered(); len(d.asked) >= mostAsked {
		return nil
	}
	q := &question{asked: time.Now(), done: make(chan struct{})}
	if first, again := d.first[before]; again {
		q.asked = first
		delete(d.first, before)
	}
	d.asked[before] = q
	ctx, q.cancel = context.WithCancel(ctx)
	go d.answer(ctx, before, q)
	return q
}

// forgetAnswered removes answered questions if the limit is reached. They may be asked again.
func (d *ancestry) forgetAnswered() {
	if len(d.asked) < mostAsked {
		return
	}
	maps.DeleteFunc(d.asked, func(_ string, q *question) bool { return q.isDone() })
}

func (d *ancestry) answer(ctx context.Context, before string, q *question) {
	defer q.cancel()
	defer close(q.done)
	d.asking.Lock()
	defer d.asking.Unlock()
	var end time.Time
	q.err = panics.Catch(func() error {
		options, err := d.source.Options()
		if err != nil {
			return err
		}
		return d.slots.Read(ctx, d.source.Location, func(ctx context.Context) (err error) {
			if end.IsZero() {
				end = d.begin().Add(d.source.Timeout)
			}
			ctx, cancel := context.WithDeadlineCause(ctx, end, fmt.Errorf(
				"searching the history took longer than %s; raise the source's timeout", d.source.Timeout))
			defer cancel()
			q.follows, err = gitsource.Descends(ctx, options, d.read, before)
			return err
		})
	})
	if errors.Is(q.err, history.ErrGone) {
		q.err = fmt.Errorf("%w: %w", reconcile.ErrGone, q.err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.canceled && q.err != nil {
		q.err = reconcile.ErrReading
	}
}

// begin records that the source has acquired a slot. It returns the time at which the check's timeout starts.
func (d *ancestry) begin() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.turn.IsZero() {
		d.turn = now
		close(d.begun)
	}
	if d.loops {
		return now // the revision may have been read hours ago
	}
	return d.turn
}
