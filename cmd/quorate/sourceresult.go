package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/steps"
)

// sourceResult is the result of reading one source.
type sourceResult struct {
	source source
	// reads, if set, is shared by several Kubernetes clusters.
	reads *sources.Shared
	// steps, if set, is called when the source has been fetched.
	steps steps.Hook
	// name identifies the source in status, and label identifies it in reports.
	name, label string
	desired     gitsource.Desired
	// ancestry is the ancestry of the revision, or nil if it does not matter.
	ancestry *ancestry
	err      error
	// at is when the result was last confirmed. It is nil before the source is read.
	at *moment
	// began is when reading started.
	began time.Time
}

// headStart is how long clusters wait for sources that cannot affect them. Clusters whose sources are read later wait
// for the same time again, then for twice that time, and so on. A slow source then costs a few extra passes instead of
// one per source.
const headStart = 500 * time.Millisecond

// fetch reads all sources, as many at a time as there are fetch slots. Each source has its own credentials and fails
// independently. While some sources are still being read, fetch calls early with the declarations of the other
// sources. Sources that are still being read have the error ErrReading.
func (f *sourceFlags) fetch(ctx context.Context, early func([]sourceResult)) ([]sourceResult, error) {
	all, err := f.unread()
	if err != nil {
		return nil, err
	}
	ctx, cancel := sources.WithReadTime(ctx, len(all))
	defer cancel()
	took := make(chan func(), len(all))
	for _, i := range rand.Perm(len(all)) { // random, so that different sources wait each time
		s := all[i]
		go func() {
			read := s.read(ctx, &f.readers[i])
			took <- func() { all[i] = read }
		}()
	}
	gather(took, len(all), func() { early(slices.Clone(all)) })
	return all, nil
}

// unread returns a result for each source, as it is before the source is read. It does not repeat earlier checks.
func (f *sourceFlags) unread() ([]sourceResult, error) {
	list, err := f.sources(func(source) error { return nil })
	if err != nil {
		return nil, err
	}
	if f.readers == nil {
		f.readers = make([]gitsource.Reader, len(list))
	}
	if f.slots == nil {
		f.slots = sources.NewSlots(f.atOnce)
	}
	all, names, labels := make([]sourceResult, len(list)), namesOf(list), labelsOf(list)
	for i, s := range list {
		s.slots = f.slots
		all[i] = sourceResult{source: s, reads: f.reads, steps: f.steps, name: names[i], label: labels[i],
			err: fmt.Errorf("read %s: %w", s.location, reconcile.ErrReading)}
	}
	return all, nil
}

// read reads the source with its reader.
func (s sourceResult) read(ctx context.Context, reader *gitsource.Reader) sourceResult {
	s.began = time.Now()
	ended := steps.Begin(s.steps, steps.Fetch)
	s.err = panics.Catch(func() (err error) {
		s.desired, err = s.reads.Once(s.whatIsRead(), func() (gitsource.Desired, error) {
			return s.source.fetch(ctx, reader)
		})
		return err
	})
	ended()
	s.ancestry, s.at = s.source.ancestryOf(s.desired.Revision), momentOf(time.Now())
	return s
}

// whatIsRead returns a key for the data to read, which is unique among all sources that the Kubernetes clusters of a
// run may read. Settings that are not in the key are the same for all of these sources.
func (s sourceResult) whatIsRead() string {
	return fmt.Sprintf("%q", []string{s.source.location, s.source.path, s.source.selected(), s.source.namespace})
}

// moment is a time that can be moved forward while other goroutines read it.
type moment struct{ nanoseconds atomic.Int64 }

func momentOf(t time.Time) *moment {
	m := &moment{}
	m.moveTo(t)
	return m
}

func (m *moment) moveTo(t time.Time) { m.nanoseconds.Store(t.UnixNano()) }

func (m *moment) time() time.Time { return time.Unix(0, m.nanoseconds.Load()) }

// gather receives n results. At growing intervals, it calls early if it has received new results.
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
