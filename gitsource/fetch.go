package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
)

var (
	// ErrSource is matched by errors that say that a source cannot be read: it is
	// unreachable, or it lacks the branch, the path or anything at all. What was
	// declared before still holds.
	ErrSource = errors.New("the source cannot be read")
	// ErrOptions is matched by errors that say that no source can be read with these Options.
	ErrOptions = errors.New("the options for the source are not valid")
)

// FetchTimeout bounds a Fetch, besides its context.
const FetchTimeout = 2 * time.Minute

// Desired is what a source declares.
type Desired struct {
	Revision refs.Revision
	manifests.Declarations
}

// Fetch reads what a source declares. Its errors match ErrSource or ErrOptions.
func Fetch(ctx context.Context, o Options) (Desired, error) {
	ctx, cancel := context.WithTimeout(ctx, FetchTimeout)
	defer cancel()
	o, err := o.normalized()
	if err != nil {
		return Desired{}, err
	}
	files, revision, err := open(ctx, o)
	if err != nil {
		return Desired{}, err
	}
	declared, err := manifests.Read(ctx, files, o.Options)
	if err != nil {
		return Desired{}, sourceError(err, "read the path %q of %s", o.Path, o.Location)
	}
	return Desired{Revision: revision, Declarations: declared}, nil
}

// open gives the files of the revision that o names.
func open(ctx context.Context, o Options) (fs.FS, refs.Revision, error) {
	if isURL(o.Location) {
		return openRemote(ctx, o)
	}
	return openLocal(o)
}

// openRemote fetches one commit into memory.
func openRemote(ctx context.Context, o Options) (fs.FS, refs.Revision, error) {
	session, err := remote.Open(ctx, remote.Repository{URL: o.Location, Auth: o.Auth})
	if err != nil {
		return nil, refs.Revision{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	defer session.Close()
	revision, err := session.References().Find(o.Selector)
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "find what to read in %s", o.Location)
	}
	store := memory.NewStorage()
	if err := session.Fetch(ctx, plumbing.NewHash(revision.Commit), store); err != nil {
		return nil, refs.Revision{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return openCommit(store, revision, o)
}

// openCommit gives the files of a revision whose hash names a commit or a tag of one, if it is signed as o asks.
func openCommit(store storer.EncodedObjectStorer, r refs.Revision, o Options) (fs.FS, refs.Revision, error) {
	tree, opened, err := o.Verify.open(store, r)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, refs.Revision{}, sourceErrorf("%s has no commit %s", o.Location, r.Commit)
	}
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "read %s of %s", r, o.Location)
	}
	return tree, opened, nil
}

func sourceError(err error, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w", ErrSource, fmt.Sprintf(format, args...), err)
}

func sourceErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSource, fmt.Sprintf(format, args...))
}

func optionsErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
