package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/gitsource/gittree"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

var (
	// ErrSource is matched by errors that say that a source cannot be read: it is
	// unreachable, or it lacks the branch, the path or anything at all. What was
	// declared before still holds.
	ErrSource = errors.New("the source cannot be read")
	// ErrOptions is matched by errors that say that no source can be read with these Options.
	ErrOptions = errors.New("the options for the source are not valid")
)

// MissingPathError says that a revision has no such path. It goes by what the source has answered, whatever the process
// says that takes its files apart.
type MissingPathError struct {
	Revision refs.Revision
	// Path that is not there: the one to read, or one above it.
	Path string
}

func (e MissingPathError) Error() string {
	if e.Revision.Commit == "" { // a directory
		return "there is no " + e.Path
	}
	return fmt.Sprintf("there is no %s in %s", e.Path, e.Revision)
}

// FetchTimeout bounds a Fetch, besides its context, where the options give no other time.
const FetchTimeout = 2 * time.Minute

// Desired is what a source declares.
type Desired struct {
	Revision refs.Revision
	manifests.Declarations
}

// Fetch reads what a source declares. Its errors match ErrSource or ErrOptions.
func Fetch(ctx context.Context, o Options) (Desired, error) { return new(Reader).Fetch(ctx, o) }

// Reader reads a source again and again. Where its references still name the commit that was read
// last, neither objects are fetched nor declarations read. The zero Reader is ready; one source has
// one Reader.
type Reader struct {
	mu sync.Mutex
	// last is what was read last, with the options for it.
	last    Desired
	options Options
	found   refs.Revision
}

// Fetch does as the function of that name does. What it returns is the caller's.
func (r *Reader) Fetch(ctx context.Context, o Options) (Desired, error) {
	o, err := o.normalized()
	if err != nil {
		return Desired{}, err
	}
	if err := checkLocal(o); err != nil {
		return Desired{}, err
	}
	known, unless := r.known(o)
	return within(ctx, o, func(ctx context.Context) (Desired, error) {
		found, desired, err := fetchApart(ctx, o, unless)
		if err != nil {
			return Desired{}, err
		}
		if unless.Commit != "" && found == unless {
			return known, nil
		}
		return r.remember(o, found, desired), nil
	})
}

// fetchHere finds the revision that is meant, and reads it in this process unless it is that one,
// with that name and hash.
func fetchHere(ctx context.Context, o Options, unless refs.Revision, read filesReader) (refs.Revision, Desired, error) {
	source, err := open(ctx, o)
	if err != nil {
		return refs.Revision{}, Desired{}, err
	}
	defer source.close()
	found, err := source.find(o.Selector)
	if err != nil {
		return refs.Revision{}, Desired{}, sourceError(err, "find what to read in %s", o.Location)
	}
	if found.Commit != "" && found == unless {
		return found, Desired{}, nil
	}
	desired, err := source.read(ctx, o, found, read)
	return found, desired, err
}

// known returns what was read last, if it was read in the same way, and what was found to read
// then.
func (r *Reader) known(o Options) (Desired, refs.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found.Commit == "" || !reflect.DeepEqual(r.options, o) {
		return Desired{}, refs.Revision{}
	}
	return r.last.Clone(), r.found
}

func (r *Reader) remember(o Options, found refs.Revision, d Desired) Desired {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.options, r.found, r.last = o, found, d
	return d.Clone()
}

// Clone shares nothing with it that a caller may change.
func (d Desired) Clone() Desired {
	d.Problems = slices.Clone(d.Problems)
	d.Clusters = slices.Clone(d.Clusters)
	for i, c := range d.Clusters {
		c.Cluster.DeepCopyInto(&d.Clusters[i].Cluster)
		d.Clusters[i].Applied = runtime.DeepCopyJSON(c.Applied)
		d.Clusters[i].Warnings = slices.Clone(c.Warnings)
	}
	return d
}

// toEnd is how long what is out of time has to stop its processes and to remove their files.
const toEnd = time.Second

// within calls what is to be done, and returns when it has ended, or soon after the time is over,
// whichever comes first: it may hang where no context is looked at.
func within[T any](ctx context.Context, o Options, do func(context.Context) (T, error)) (T, error) {
	timeout := cmp.Or(o.Timeout, FetchTimeout)
	tooLong := fmt.Errorf("it took longer than %s; --fetch-timeout allows more: %w", timeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLong)
	type result struct {
		value    T
		err      error
		panicked any
	}
	results := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			results <- r
		}()
		r.value, r.err = do(ctx)
	}()
	defer cancel()
	select {
	case r := <-results:
		if r.panicked != nil {
			panic(r.panicked) // where the caller can recover from it
		}
		if r.err == nil || ctx.Err() == nil {
			return r.value, r.err
		}
	case <-ctx.Done():
		select {
		case <-results:
		case <-time.After(toEnd):
		}
	}
	var none T
	return none, sourceError(context.Cause(ctx), "read %s", o.Location)
}

// Descends says whether what was read, which newer tells, descends from the commit older of the
// same source, or is that commit. What cannot be told within the limits is an error; its errors
// match ErrSource or ErrOptions.
func Descends(ctx context.Context, o Options, newer refs.Revision, older string) (bool, error) {
	o, err := o.normalized()
	if err != nil {
		return false, err
	}
	if !plumbing.IsHash(newer.Commit) || !plumbing.IsHash(older) {
		return false, optionsErrorf("tell whether %q descends from %q: "+
			"both are commits, with all 40 hexadecimal digits", newer.Commit, older)
	}
	return within(ctx, o, func(ctx context.Context) (bool, error) { return descendsApart(ctx, o, newer.Commit, older) })
}

// descendsHere tells it in this process.
func descendsHere(ctx context.Context, o Options, newer, older string) (bool, error) {
	source, err := open(ctx, o)
	if err != nil {
		return false, err
	}
	defer source.close()
	descends, err := source.descends(ctx, plumbing.NewHash(newer), plumbing.NewHash(older))
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return descends, nil
}

// source is an open directory, local repository or remote one.
type source interface {
	// find returns the revision that is meant. Its Commit may be the hash of a tag object.
	find(refs.Selector) (refs.Revision, error)
	// read reads a revision by what reads its files.
	read(context.Context, Options, refs.Revision, filesReader) (Desired, error)
	descends(ctx context.Context, newer, older plumbing.Hash) (bool, error)
	close()
}

func open(ctx context.Context, o Options) (source, error) {
	if isRemote(o.Location) {
		return openRemote(ctx, o)
	}
	return openLocal(o)
}

// filesReader reads what the files of a revision declare.
type filesReader = func(context.Context, Options, fs.FS, refs.Revision) (Desired, error)

// readFiles reads them in this process, as far as files are read there at all.
func readFiles(ctx context.Context, o Options, files fs.FS, r refs.Revision) (Desired, error) {
	return readFrom(ctx, o, manifests.Answers(files, o.Limits), r)
}

// readFrom reads what files declare that tell tells of.
func readFrom(
	ctx context.Context, o Options, tell func(manifests.Question) manifests.Answer, r refs.Revision,
) (Desired, error) {
	declared, err := manifests.ReadFrom(ctx, tell, o.Options)
	var missing manifests.MissingError
	if errors.As(err, &missing) {
		err = MissingPathError{r, missing.Name}
	}
	if err != nil {
		return Desired{}, sourceError(err, "read the path %q of %s", o.Path, o.Location)
	}
	return Desired{Revision: r, Declarations: declared}, nil
}

// readCommit reads what a revision declares whose hash names a commit or a tag of one.
func readCommit(
	ctx context.Context, o Options, store storer.EncodedObjectStorer, r refs.Revision, read filesReader,
) (Desired, error) {
	files, r, err := openCommit(store, r, o)
	if err != nil {
		return Desired{}, err
	}
	desired, err := read(ctx, o, files, r)
	if missing := files.Missing(); missing != nil {
		return Desired{}, sourceErrorf("read %s of %s: %v%s", r, o.Location, missing, whyIncomplete(store))
	}
	return desired, err
}

// whyIncomplete returns what a store reports about objects that it lacks, to be appended to an error.
func whyIncomplete(store storer.EncodedObjectStorer) string {
	if s, ok := store.(interface{ WhyIncomplete() string }); ok && s.WhyIncomplete() != "" {
		return ": " + s.WhyIncomplete()
	}
	return ""
}

// openCommit gives the files of a revision whose hash names a commit or a tag of one, if it is
// signed as o asks.
func openCommit(store storer.EncodedObjectStorer, r refs.Revision, o Options) (gittree.Tree, refs.Revision, error) {
	tree, opened, err := o.Verify.open(store, r)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return gittree.Tree{}, refs.Revision{}, sourceErrorf("%s has no commit %s%s", o.Location, r.Commit,
			whyIncomplete(store))
	}
	if err != nil {
		return gittree.Tree{}, refs.Revision{}, sourceError(err, "read %s of %s", r, o.Location)
	}
	if asked := o.Selector.Commit; asked != "" && opened.Commit != asked {
		return gittree.Tree{}, refs.Revision{}, sourceErrorf("%s has %s as a tag, not as a commit; the commit is %s",
			o.Location, asked, opened.Commit)
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
