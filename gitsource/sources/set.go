package sources

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/steps"
)

// Set reads several sources concurrently, limited by Slots. Each source has its own credentials, and one source can
// fail without affecting the others. It implements reconcile.Source.
type Set struct {
	Sources []Source
	// Slots limits how many sources are read at the same time; nil means no limit.
	Slots *Slots
	// Shared, if set, is shared by a run over several Kubernetes clusters, so that each source is read only once.
	Shared *Shared
	// Steps, if set, is called when a source has been fetched.
	Steps steps.Hook
	// Namespaces, if not empty, restricts declarations to these namespaces.
	Namespaces reconcile.Namespaces
	// Confirmed holds the revisions whose removals are confirmed.
	Confirmed []string

	// readers cache the declarations of each source in runs that read sources repeatedly.
	readers []gitsource.Reader
}

// headStart is how long clusters wait at first for sources that cannot affect them. Later waits are longer, so that
// slow sources cause only a few extra passes instead of one per source.
const headStart = 500 * time.Millisecond

// Fetch implements reconcile.Source.
func (s *Set) Fetch(ctx context.Context, early func(reconcile.Desired)) reconcile.Desired {
	return s.within(s.Declared(ctx, func(d reconcile.Desired) {
		if d = s.within(d); len(d.Ready()) > 0 {
			early(d)
		}
	}))
}

// Follow implements reconcile.Source.
func (s *Set) Follow(ctx context.Context, pause time.Duration, known func(reconcile.Desired)) {
	all := s.unread()
	took := make(chan func() (news bool))
	for i := range all {
		go all[i].follow(ctx, &s.readers[i], pause, func(read result) {
			select {
			case took <- func() bool { return all[i].take(read) }:
			case <-ctx.Done():
			}
		})
	}
	tellNews(ctx, took, func() bool { return slices.ContainsFunc(all, result.reading) },
		func() { known(s.within(s.together(slices.Clone(all)))) })
}

// Declared returns the declarations of the sources in all namespaces. While some sources are still being read, it calls
// early with the declarations of the other sources.
func (s *Set) Declared(ctx context.Context, early func(reconcile.Desired)) reconcile.Desired {
	return s.together(s.fetch(ctx, func(soFar []result) { early(s.together(soFar)) }))
}

// within returns the declarations in the run's namespaces.
func (s *Set) within(d reconcile.Desired) reconcile.Desired {
	d.Clusters = slices.DeleteFunc(d.Clusters, func(c reconcile.Declaration) bool {
		return !s.Namespaces.Allow(c.Cluster.Namespace)
	})
	return d
}

// together returns the declarations of the sources that have been read.
func (s *Set) together(all []result) reconcile.Desired {
	desired := join(all)
	desired.Summarize()
	desired.Confirmed = s.Confirmed
	desired.Namespaces = reconcile.Namespaces(Namespaces(s.Sources))
	return desired
}

// fetch reads all sources. While some sources are still being read, it calls early with the results so far, in which
// unread sources have the error ErrReading.
func (s *Set) fetch(ctx context.Context, early func([]result)) []result {
	all := s.unread()
	ctx, cancel := WithReadTime(ctx, len(all))
	defer cancel()
	took := make(chan func(), len(all))
	for _, i := range rand.Perm(len(all)) { // random, so that the same sources do not always wait
		one := all[i]
		go func() {
			read := one.read(ctx, &s.readers[i])
			took <- func() { all[i] = read }
		}()
	}
	gather(took, len(all), func() { early(slices.Clone(all)) })
	return all
}

// unread returns the initial result of each source, before it is read.
func (s *Set) unread() []result {
	if s.readers == nil {
		s.readers = make([]gitsource.Reader, len(s.Sources))
	}
	all, names, labels := make([]result, len(s.Sources)), names(s.Sources), Labels(s.Sources)
	for i, one := range s.Sources {
		all[i] = result{source: one, slots: s.Slots, shared: s.Shared, steps: s.Steps, name: names[i],
			label: labels[i], err: fmt.Errorf("read %s: %w", one.Location, reconcile.ErrReading)}
	}
	return all
}

// gather receives n results. Until then, it calls early at increasing intervals if there are new results.
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
