package gitsource

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/cache"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

// remoteRepository is a server whose references have been read.
type remoteRepository struct{ *remote.Session }

func openRemote(ctx context.Context, o Options) (source, error) {
	session, err := remote.Open(ctx, o.repository())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return remoteRepository{session}, nil
}

func (r remoteRepository) close() { r.Close() }

func (r remoteRepository) find(s refs.Selector) (refs.Revision, error) { return r.References().Find(s) }

func (r remoteRepository) descends(ctx context.Context, newer, older plumbing.Hash) (bool, error) {
	return r.Descends(ctx, newer, older)
}

// read reads a revision from the cache, or fetches it.
func (r remoteRepository) read(
	ctx context.Context, o Options, revision refs.Revision, read filesReader,
) (Desired, error) {
	if o.CacheDir == "" {
		return r.fetch(ctx, o, revision, read, func(*cache.Objects) error { return nil })
	}
	directory, err := cache.Open(o.CacheDir)
	if err != nil {
		return Desired{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	key := strings.Join([]string{o.Location, o.Selector.String(), o.Path}, "\x00")
	cached := directory.Load(key)
	if cached.HasEncodedObject(plumbing.NewHash(revision.Commit)) == nil {
		if desired, err := readCommit(ctx, o, cached, revision, read); !cached.Missed() {
			directory.Touch(key)
			return desired, err
		}
	}
	return r.fetch(ctx, o, revision, read, func(needed *cache.Objects) error { return directory.Store(key, needed) })
}

// fetch fetches a revision, reads it, and calls keep with the objects that were read.
func (r remoteRepository) fetch(
	ctx context.Context, o Options, revision refs.Revision, read filesReader, keep func(*cache.Objects) error,
) (Desired, error) {
	store, err := r.Fetch(ctx, plumbing.NewHash(revision.Commit))
	if err != nil {
		return Desired{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	defer store.Close()
	recorder := cache.Record(store)
	desired, err := readCommit(ctx, o, recorder, revision, read)
	if err != nil {
		return Desired{}, err
	}
	if err := keep(recorder.Read); err != nil {
		return Desired{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return desired, nil
}
