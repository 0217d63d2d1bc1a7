package main

import (
	"context"
	"strings"
	"sync"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/refs"
)

// descent tells which revisions the one that was read descends from. It asks once for each.
type descent struct {
	source source
	read   refs.Revision

	mu    sync.Mutex
	known map[string]answer
}

type answer struct {
	follows bool
	err     error
}

// descentOf returns what tells whether a revision follows another; nil where that does not matter.
func (s source) descentOf(read refs.Revision) func(context.Context, string) (bool, error) {
	if s.allowNonFastForward || read.Commit == "" {
		return nil
	}
	d := &descent{source: s, read: read, known: map[string]answer{}}
	return d.follows
}

func (d *descent) follows(ctx context.Context, revision string) (bool, error) {
	_, before, ok := strings.Cut(revision, "sha1:")
	if !ok || before == d.read.Commit { // what a directory declared has no place in a history
		return true, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.known[before]; !ok {
		d.known[before] = d.ask(ctx, before)
	}
	return d.known[before].follows, d.known[before].err
}

func (d *descent) ask(ctx context.Context, before string) answer {
	options, err := d.source.options()
	if err != nil {
		return answer{err: err}
	}
	end, err := d.source.turns.take(ctx, d.source.location)
	if err != nil {
		return answer{err: err}
	}
	defer end()
	follows, err := gitsource.Descends(ctx, options, d.read, before)
	return answer{follows, err}
}
