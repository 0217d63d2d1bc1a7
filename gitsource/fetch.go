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
	// ErrSource is matched by errors that report that a source cannot be read: it is unreachable, or the branch, the
	// path or all content is missing. The previous declarations still apply.
	ErrSource = errors.New("the source cannot be read")
	// ErrOptions is matched by errors that report invalid Options, which cannot be used to read a source.
	ErrOptions = errors.New("the options for the source are not valid")
)

// MissingPathError reports that a path does not exist in a revision. It is based on answers from the source, not on
// reports from the process that parses the files.
type MissingPathError struct {
	Revision refs.Revision
	// Path is the missing path: the path to read, or a parent of it.
	Path string
}

func (e MissingPathError) Error() string {
	if e.Revision.Commit == "" { // the source has no revisions
		return "path " + e.Path + " does not exist"
	}
	return fmt.Sprintf("path %s does not exist in %s", e.Path, e.Revision)
}

// FetchTimeout limits a Fetch, in addition to its context, if the options do not set a timeout.
const FetchTimeout = 2 * time.Minute

// Desired is the content of a source: its revision and declarations.
type Desired struct {
	Revision refs.Revision
	manifests.Declarations
}

// Fetch reads the declarations of a source. Its errors match ErrSource or ErrOptions.
func Fetch(ctx context.Context, o Options) (Desired, error) { return new(Reader).Fetch(ctx, o) }

// Reader reads one source repeatedly. While the references still name the commit that was read last, it neither fetches
// objects nor reads declarations. The zero Reader is ready to use.
type Reader struct {
	mu sync.Mutex
	// last is the result of the last read, and options are the options used for it.
	last    Desired
	options Options
	found   refs.Revision
}

// Fetch reads the source like the function Fetch. The caller must not modify the content of the result, because the
// Reader keeps it without copying it and may return it again.
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
		found, desired, err := fetchInChild(ctx, o, unless)
		if err != nil {
			return Desired{}, err
		}
		if unless.Commit != "" && found == unless {
			return known, nil
		}
		return r.remember(o, found, desired), nil
	})
}

// fetchHere finds the selected revision and reads it in this process. It does not read a revision that equals unless.
func fetchHere(ctx context.Context, o Options, unless refs.Revision, read filesReader) (refs.Revision, Desired, error) {
	source, err := open(ctx, o)
	if err != nil {
		return refs.Revision{}, Desired{}, err
	}
	defer source.close()
	found, err := source.find(o.Selector)
	if err != nil {
		return refs.Revision{}, Desired{}, sourceError(err, "find the revision to read in %s", o.Location)
	}
	if found.Commit != "" && found == unless {
		return found, Desired{}, nil
	}
	desired, err := source.read(ctx, o, found, read)
	return found, desired, err
}

// known returns the result of the last read and the revision found then, if the options were the same.
func (r *Reader) known(o Options) (Desired, refs.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found.Commit == "" || !reflect.DeepEqual(r.options, o) {
		return Desired{}, refs.Revision{}
	}
	return r.last, r.found
}

func (r *Reader) remember(o Options, found refs.Revision, d Desired) Desired {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.options, r.found, r.last = o, found, d
	return d
}

// Clone returns a copy that does not share mutable data with d.
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

// toEnd is the time allowed for stopping processes and removing files after a timeout.
const toEnd = time.Second

// within calls do and returns when it ends or shortly after the timeout, whichever comes first. do may hang in code
// that does not check its context.
func within[T any](ctx context.Context, o Options, do func(context.Context) (T, error)) (T, error) {
	timeout := cmp.Or(o.Timeout, FetchTimeout)
	tooLong := fmt.Errorf("timed out after %s; to allow more time, raise the source's timeout: %w", timeout,
		context.DeadlineExceeded)
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
			panic(r.panicked) // in the caller's goroutine, which can recover from it
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

// Descends reports whether the revision newer descends from the commit older of the same source, or is that commit. If
// this cannot be determined within the limits, it returns an error. Its errors match ErrSource or ErrOptions.
func Descends(ctx context.Context, o Options, newer refs.Revision, older string) (bool, error) {
	o, err := o.normalized()
	if err != nil {
		return false, err
	}
	if !plumbing.IsHash(newer.Commit) || !plumbing.IsHash(older) {
		return false, optionsErrorf("determine whether %q descends from %q: "+
			"both must be full commit hashes of 40 hexadecimal digits", newer.Commit, older)
	}
	return within(ctx, o, func(ctx context.Context) (bool, error) {
		return descendsInChild(ctx, o, newer.Commit, older)
	})
}

// descendsHere does the work of Descends in this process.
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

// source is an open directory, local repository or remote repository.
type source interface {
	// find returns the selected revision. Its Commit may be the hash of a tag object.
	find(refs.Selector) (refs.Revision, error)
	// read reads a revision with the given filesReader.
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

// filesReader reads the declarations in the files of a revision.
type filesReader = func(context.Context, Options, fs.FS, refs.Revision) (Desired, error)

// readFiles reads the files in this process. They may be parsed in a different process.
func readFiles(ctx context.Context, o Options, files fs.FS, r refs.Revision) (Desired, error) {
	return readFrom(ctx, o, manifests.Answers(files, o.Limits), r)
}

// readFrom reads the declarations in the files of a revision. tell answers questions about the files.
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

// readCommit reads the declarations of a revision. r.Commit is the hash of a commit, or of a tag of a commit.
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

// whyIncomplete returns a suffix for an error message: the store's explanation for missing objects, or "".
func whyIncomplete(store storer.EncodedObjectStorer) string {
	if s, ok := store.(interface{ WhyIncomplete() string }); ok && s.WhyIncomplete() != "" {
		return ": " + s.WhyIncomplete()
	}
	return ""
}

// openCommit returns the files of a revision if it is signed as o requires. r.Commit is the hash of a commit, or of a
// tag of a commit.
func openCommit(store storer.EncodedObjectStorer, r refs.Revision, o Options) (gittree.Tree, refs.Revision, error) {
	tree, opened, err := o.Verify.open(store, r)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return gittree.Tree{}, refs.Revision{}, sourceErrorf("%s does not have the commit %s%s", o.Location, r.Commit,
			whyIncomplete(store))
	}
	if err != nil {
		return gittree.Tree{}, refs.Revision{}, sourceError(err, "read %s of %s", r, o.Location)
	}
	if asked := o.Selector.Commit; asked != "" && opened.Commit != asked {
		return gittree.Tree{}, refs.Revision{}, sourceErrorf("in %s, %s is a tag, not a commit; the tag points to "+
			"the commit %s",
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
