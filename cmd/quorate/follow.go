package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
)

// Follow implements reconcile.Source.
func (f *sourceFlags) Follow(ctx context.Context, pause time.Duration, known func(reconcile.Desired)) {
	if f.live() {
		known(f.declaredLive())
		return
	}
	all, err := f.unread()
	if err != nil {
		known(reconcile.Desired{Unread: err})
		return
	}
	took := make(chan func() (news bool))
	for i := range all {
		go all[i].follow(ctx, &f.readers[i], pause, func(read sourceResult) {
			select {
			case took <- func() bool { return all[i].take(read) }:
			case <-ctx.Done():
			}
		})
	}
	tellNews(ctx, took, func() bool { return slices.ContainsFunc(all, sourceResult.reading) },
		func() { known(f.within(f.together(slices.Clone(all)))) })
}

// tellNews receives results until ctx is done, and calls tell immediately after a result with news. While any source
// has never been read, it calls tell only at growing intervals. A slow source then costs a few extra passes instead of
// one per source. tellNews calls tell at least once.
func tellNews(ctx context.Context, results <-chan func() (news bool), reading func() bool, tell func()) {
	pause, news, due := headStart, true, false
	next := time.NewTimer(pause)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			if news {
				tell()
			}
			return
		case take := <-results:
			news = take() || news
		case <-next.C:
			pause *= 2
			next.Reset(pause)
			due = true
		}
		if news && (due || !reading()) {
			tell()
			news = false
		}
		due = false
	}
}

// follow reads the source repeatedly, with a pause between reads, until ctx is done.
func (s sourceResult) follow(
	ctx context.Context, reader *gitsource.Reader, pause time.Duration, took func(sourceResult),
) {
	for ctx.Err() == nil {
		read := s.read(ctx, reader)
		if read.ancestry != nil {
			read.ancestry.loops = true
		}
		took(read)
		select {
		case <-ctx.Done():
		case <-time.After(pause + rand.N(pause/10+1)): // jitter, so that sources are read at different times
		}
	}
}

func (s sourceResult) reading() bool { return errors.Is(s.err, reconcile.ErrReading) }

// take stores the new result, and reports whether it differs from the previous result. If the revision is unchanged,
// take keeps its known ancestry.
func (s *sourceResult) take(read sourceResult) (news bool) {
	switch {
	case s.err == nil && read.err == nil && read.desired.Revision.Commit != "" &&
		s.desired.Revision == read.desired.Revision:
		s.at.moveTo(read.at.time())
		s.ancestry.confirm(read.began)
		if s.ancestry.failed() {
			read.ancestry.takeOver(s.ancestry)
			s.ancestry = read.ancestry
			return true
		}
		return false
	case s.err != nil && read.err != nil && s.err.Error() == read.err.Error():
		s.at.moveTo(read.at.time())
		return false
	}
	*s = read
	return true
}
