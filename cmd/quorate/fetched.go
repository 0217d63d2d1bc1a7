package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/panics"
	"quorate.dev/quorate/reconcile/steps"
)

// fetched is what became of one source.
type fetched struct {
	source source
	// reads, if set, are shared by several Kubernetes clusters.
	reads *reads
	// steps, if set, is told when it is fetched.
	steps steps.Hook
	// name of the source in status, and label in reports.
	name, label string
	desired     gitsource.Desired
	// descent is nil where it does not matter what the revision descends from.
	descent *descent
	err     error
	// at is when that was last so. It is nil before the source is read.
	at *moment
	// began is when it was begun to be read.
	began time.Time
}

// headStart is how long clusters wait for sources that have no say in them; and those of sources
// that are read later wait for others, as long again and then twice that, so that a slow source
// costs a few passes and not one for each that is not.
const headStart = 500 * time.Millisecond

// fetch reads all sources, so many at once as there are turns. Each reads its own credentials, and fails
// alone. While some are being read, early is told what the others declare; they have the error ErrReading
// there.
func (f *sourceFlags) fetch(ctx context.Context, early func([]fetched)) ([]fetched, error) {
	all, err := f.unread()
	if err != nil {
		return nil, err
	}
	ctx, cancel := toRead(ctx, len(all))
	defer cancel()
	took := make(chan func(), len(all))
	for _, i := range rand.Perm(len(all)) { // so that it is not always the same ones that wait for their turn
		s := all[i]
		go func() {
			read := s.read(ctx, &f.readers[i])
			took <- func() { all[i] = read }
		}()
	}
	gather(took, len(all), func() { early(slices.Clone(all)) })
	return all, nil
}

// unread are the sources before they are read. What has been checked before is not checked again.
func (f *sourceFlags) unread() ([]fetched, error) {
	sources, err := f.sources(func(source) error { return nil })
	if err != nil {
		return nil, err
	}
	if f.readers == nil {
		f.readers = make([]gitsource.Reader, len(sources))
	}
	if f.turns == nil {
		f.turns = newTurns(f.atOnce)
	}
	all, names, labels := make([]fetched, len(sources)), namesOf(sources), labelsOf(sources)
	for i, s := range sources {
		s.turns = f.turns
		all[i] = fetched{source: s, reads: f.reads, steps: f.steps, name: names[i], label: labels[i],
			err: fmt.Errorf("read %s: %w", s.location, reconcile.ErrReading)}
	}
	return all, nil
}

// read reads the source, by the reader that it has.
func (s fetched) read(ctx context.Context, reader *gitsource.Reader) fetched {
	s.began = time.Now()
	step := steps.Step{Kind: steps.Phase, Name: steps.Fetch, Source: s.label}
	steps.Do(ctx, s.steps, step, func(ctx context.Context) steps.End {
		s.err = panics.Catch(func() (err error) {
			s.desired, err = s.reads.once(s.whatIsRead(), func() (gitsource.Desired, error) {
				return s.source.fetch(ctx, reader)
			})
			return err
		})
		if s.err != nil {
			return steps.End{Outcome: steps.Error, Error: s.err.Error()}
		}
		return steps.End{Outcome: steps.OK, Revision: s.revision()}
	})
	s.descent, s.at = s.source.descentOf(s.desired.Revision), momentOf(time.Now())
	return s
}

// whatIsRead tells what is read from what else the Kubernetes clusters of a run may read. All else is the same for all.
func (s fetched) whatIsRead() string {
	return fmt.Sprintf("%q", []string{s.source.location, s.source.path, s.source.selected(), s.source.namespace})
}

// moment is a time that moves on while others ask for it.
type moment struct{ nanoseconds atomic.Int64 }

func momentOf(t time.Time) *moment {
	m := &moment{}
	m.moveTo(t)
	return m
}

func (m *moment) moveTo(t time.Time) { m.nanoseconds.Store(t.UnixNano()) }

func (m *moment) time() time.Time { return time.Unix(0, m.nanoseconds.Load()) }

// gather takes in so many results. In between, ever more rarely, it says that there are some of
// which nothing was said before.
func gather(results <-chan func(), n int, early func()) {
	pause := headStart
	next, news := time.NewTimer(pause), false
	defer next.Stop()
	for n > 0 {
		select {
		case take := <-results:
			take()
			n, news = n-1, true
		case <-next.C:
			if news {
				early()
				news = false
			}
			next.Reset(pause)
			pause *= 2
		}
	}
}
