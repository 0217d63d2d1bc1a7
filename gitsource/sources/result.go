package sources

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/steps"
)

// result is the result of reading one source.
type result struct {
	source Source
	// slots and shared are those of the Set.
	slots  *Slots
	shared *Shared
	// steps, if set, is called when the source has been fetched.
	steps steps.Hook
	// name identifies the source in cluster statuses, and label identifies it in reports.
	name, label string
	desired     gitsource.Desired
	// ancestry is nil if ancestry does not matter.
	ancestry *ancestry
	err      error
	// at is the time at which this result was last confirmed. It is nil until the source has been read.
	at *moment
	// began is the time at which reading started.
	began time.Time
}

// read reads the source with its reader.
func (s result) read(ctx context.Context, reader *gitsource.Reader) result {
	s.began = time.Now()
	ended := steps.Begin(s.steps, steps.Fetch)
	s.err = panics.Catch(func() (err error) {
		s.desired, err = s.shared.Once(s.whatIsRead(), func() (gitsource.Desired, error) {
			return s.source.fetch(ctx, s.slots, reader)
		})
		return err
	})
	ended()
	s.ancestry, s.at = newAncestry(s.source, s.slots, s.desired.Revision, s.began), momentOf(time.Now())
	return s
}

// whatIsRead returns a key for the data that is read. Within a run over several Kubernetes clusters, sources with the
// same key share one read; all other settings are the same for all sources.
func (s result) whatIsRead() string {
	return fmt.Sprintf("%q", []string{s.source.Location, s.source.Path, s.source.selected(), s.source.Namespace})
}

// moment is a time that can be advanced while other goroutines read it.
type moment struct{ nanoseconds atomic.Int64 }

func momentOf(t time.Time) *moment {
	m := &moment{}
	m.moveTo(t)
	return m
}

func (m *moment) moveTo(t time.Time) { m.nanoseconds.Store(t.UnixNano()) }

func (m *moment) time() time.Time { return time.Unix(0, m.nanoseconds.Load()) }
