package sources

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
)

// tellNews receives results until ctx is done, and calls tell immediately after each result that contains news. As long
// as any source has never been read, it calls tell only at increasing intervals, so that slow sources cause only a few
// extra passes instead of one per source. tellNews calls tell at least once.
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
func (s result) follow(
	ctx context.Context, reader *gitsource.Reader, pause time.Duration, took func(result),
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

func (s result) reading() bool { return errors.Is(s.err, reconcile.ErrReading) }

// take stores the new result, and reports whether it differs from the previous result. If the read failed, take keeps
// the known ancestry.
func (s *result) take(read result) (news bool) {
	again, same := false, s.err == nil && read.err == nil && read.desired.Revision.Commit != "" &&
		s.desired.Revision == read.desired.Revision
	if read.err != nil {
		read.ancestry = s.ancestry
	} else {
		read.ancestry, again = s.ancestry.next(read.ancestry)
	}
	switch {
	case same:
		s.at.moveTo(read.at.time())
		s.ancestry = read.ancestry
		return again
	case s.err != nil && read.err != nil && s.err.Error() == read.err.Error():
		s.at.moveTo(read.at.time())
		return false
	}
	*s = read
	return true
}
