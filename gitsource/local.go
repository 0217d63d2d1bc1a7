package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/history"
	"quorate.dev/quorate/gitsource/local"
	"quorate.dev/quorate/gitsource/refs"
)

// localRepository is a local repository, read in place.
type localRepository struct {
	*local.Repository
	list refs.List
}

// openLocal opens a local repository in place, or a directory that is not a repository.
func openLocal(o Options) (source, error) {
	info, err := os.Stat(o.Location)
	if err != nil {
		return nil, openError(o, err)
	}
	if !info.IsDir() {
		return nil, sourceErrorf("%s is a file; a source must be a directory or a repository", o.Location)
	}
	layout, err := local.Find(o.Location)
	if errors.Is(err, local.ErrNotRepository) {
		return openDirectory(o)
	}
	if err != nil {
		return nil, sourceError(err, "open the repository %s", o.Location)
	}
	repository, err := local.Open(layout)
	if err != nil {
		return nil, sourceError(err, "open the repository %s", o.Location)
	}
	list, err := repository.References()
	if err != nil {
		return nil, sourceError(err, "read the references of %s", o.Location)
	}
	return localRepository{repository, list}, nil
}

func (l localRepository) close() {}

func (l localRepository) find(s refs.Selector) (refs.Revision, error) { return l.list.Find(s) }

func (l localRepository) read(ctx context.Context, o Options, r refs.Revision, read filesReader) (Desired, error) {
	return readCommit(ctx, o, l, r, read)
}

// maxCommits is the maximum number of commits to read from a local repository's history.
const maxCommits = 1_000_000

func (l localRepository) descends(ctx context.Context, newer, older plumbing.Hash) (bool, error) {
	shallow, err := l.Shallow()
	if err != nil {
		return false, fmt.Errorf("read the boundary of the shallow clone: %w", err)
	}
	descends, err := history.Descends(ctx, l, shallow, newer, older, maxCommits)
	if len(shallow) > 0 && errors.Is(err, history.ErrCutOff) {
		err = fmt.Errorf("%w; to fetch the rest, run git fetch --unshallow", err)
	}
	if err != nil {
		return false, fmt.Errorf("determine whether %s descends from %s: %w", newer, older, err)
	}
	return descends, nil
}

// checkLocal returns an error if the selector cannot be used because the directory is not a repository. It does not
// read the directory's content.
func checkLocal(o Options) error {
	if isRemote(o.Location) || o.Selector == (refs.Selector{}) {
		return nil
	}
	missing := func(name string) bool {
		_, err := os.Lstat(filepath.Join(o.Location, name))
		return errors.Is(err, os.ErrNotExist)
	}
	if !missing(".") && missing(".git") && missing("HEAD") {
		return optionsErrorf("%s is not a repository: it has no branches, tags or commits", o.Location)
	}
	return nil
}

// directory is a directory that is not a repository and therefore does not have revisions.
type directory struct{ *os.Root }

func openDirectory(o Options) (source, error) {
	// checkLocal returns an error first, unless something in the directory looks like a repository.
	if o.Selector != (refs.Selector{}) {
		return nil, sourceErrorf("%s is not a repository: it has no branches, tags or commits", o.Location)
	}
	if o.Verify.Mode != "" {
		return nil, sourceErrorf("%s is not a repository: its content is not signed, but signatures must be verified",
			o.Location)
	}
	root, err := os.OpenRoot(o.Location)
	if err != nil {
		return nil, openError(o, err)
	}
	return directory{root}, nil
}

// openError returns an error for a location that cannot be opened. It names the location only once.
func openError(o Options, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, fs.ErrNotExist) && hostFirst.MatchString(o.Location) {
		return sourceErrorf("open %s: no such file or directory; if it is on a server, prefix it with https://",
			o.Location)
	}
	return sourceError(err, "open %s", o.Location)
}

// hostFirst matches a location that begins like a URL without a scheme, as browsers show URLs.
var hostFirst = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]+)?/`)

func (d directory) close() { d.Close() }

func (d directory) find(refs.Selector) (refs.Revision, error) { return refs.Revision{}, nil }

func (d directory) read(ctx context.Context, o Options, r refs.Revision, read filesReader) (Desired, error) {
	return read(ctx, o, d.FS(), r)
}

func (d directory) descends(context.Context, plumbing.Hash, plumbing.Hash) (bool, error) {
	return false, errors.New("a directory that is not a repository has no history")
}
