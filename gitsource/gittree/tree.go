// Package gittree presents the files of one commit as a file system, read directly from git objects. There is no
// worktree, and symbolic links and submodules are not followed.
package gittree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"quorate.dev/quorate/gitsource/pack"
)

// Commit describes a commit.
type Commit struct {
	Hash plumbing.Hash
	// Committed is the commit time recorded in the commit, in seconds since 1970. It is 0 if the time is not between
	// 1970 and the year 10000.
	Committed int64
}

// Open returns the files of a commit, and the commit. hash is the hash of the commit, or of a tag of it. The error
// matches plumbing.ErrObjectNotFound if the store lacks the object.
func Open(store storer.EncodedObjectStorer, hash plumbing.Hash) (Tree, Commit, error) {
	commit, err := peel(store, hash)
	if err != nil {
		return Tree{}, Commit{}, err
	}
	return newTree(store, commit.TreeHash), Commit{commit.Hash, whenCommitted(commit)}, nil
}

// whenCommitted returns the commit time recorded in a commit. The author of a commit can set any time.
func whenCommitted(commit *gitobject.Commit) int64 {
	const year10000 = 253402300800
	if at := commit.Committer.When.Unix(); at > 0 && at < year10000 {
		return at
	}
	return 0
}

// peel follows tags, and tags of tags, to the commit.
func peel(store storer.EncodedObjectStorer, hash plumbing.Hash) (*gitobject.Commit, error) {
	const maxTags = 10
	for range maxTags + 1 {
		tag, err := gitobject.GetTag(store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return gitobject.GetCommit(store, hash)
		}
		if err != nil {
			return nil, err
		}
		if tag.TargetType != plumbing.TagObject && tag.TargetType != plumbing.CommitObject {
			return nil, fmt.Errorf("the tag %q points to a %s, not to a commit", tag.Name, tag.TargetType)
		}
		hash = tag.Target
	}
	return nil, fmt.Errorf("tags of tags are nested more than %d deep", maxTags)
}

// Tree is the file tree of one commit. Symbolic links and submodules are not followed; ReadDir lists them as such.
type Tree struct{ root entry }

var _ fs.ReadLinkFS = Tree{}

func newTree(store storer.EncodedObjectStorer, root plumbing.Hash) Tree {
	shared := &objects{store: store, trees: map[plumbing.Hash][]gitobject.TreeEntry{}, maxShown: maxShown}
	return Tree{root: entry{objects: shared, path: ".", name: ".", hash: root, mode: filemode.Dir}}
}

// objects caches the trees that were read, because each lookup of a path reads all of its directories.
type objects struct {
	store storer.EncodedObjectStorer
	mu    sync.Mutex
	trees map[plumbing.Hash][]gitobject.TreeEntry
	// shown counts the entries returned so far, including repeats: nested directories that repeat the same subdirectory
	// would be practically endless.
	shown, maxShown int
	// missing is an error that names the first requested object that the store lacks.
	missing error
}

// maxShown is the maximum number of entries to return, far more than any path that declares clusters contains.
const maxShown = 100_000

// Open opens a file or a directory.
func (g Tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	found, err := g.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if found.IsDir() {
		return &directory{entry: found}, nil
	}
	content, err := found.content()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{entry: found, Reader: bytes.NewReader(content)}, nil
}

// Stat describes a file without reading its content.
func (g Tree) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	found, err := g.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return found, nil
}

// Lstat is the same as Stat, because links are not followed.
func (g Tree) Lstat(name string) (fs.FileInfo, error) { return g.Stat(name) }

// ReadLink always returns an error, because links are not followed.
func (g Tree) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

func (g Tree) find(name string) (entry, error) {
	found := g.root
	if name == "." {
		return found, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !found.IsDir() {
			return found, fs.ErrNotExist
		}
		listed, err := found.list()
		if err != nil {
			return found, err
		}
		i, ok := slices.BinarySearchFunc(listed, part,
			func(t gitobject.TreeEntry, name string) int { return strings.Compare(t.Name, name) })
		if !ok {
			return found, fs.ErrNotExist
		}
		found = found.child(listed[i])
	}
	return found, nil
}

// entry is an entry of a tree. It implements fs.FileInfo and fs.DirEntry.
type entry struct {
	objects *objects
	path    string
	// name is the name as stored in git. Entries whose names cannot be part of a path are listed, but cannot be opened.
	name string
	hash plumbing.Hash
	mode filemode.FileMode
}

func (e entry) Name() string               { return e.name }
func (e entry) IsDir() bool                { return e.mode == filemode.Dir }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return nil }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) String() string             { return fs.FormatDirEntry(e) }

func (e entry) Mode() fs.FileMode {
	switch e.mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		return 0o444
	default:
		return fs.ModeIrregular | 0o444
	}
}

// Size returns the size of the content. It returns 0 if the size is unknown, and math.MaxInt64 if the content was left
// out because it is too large.
func (e entry) Size() int64 {
	if e.IsDir() {
		return 0
	}
	size, err := e.objects.store.EncodedObjectSize(e.hash)
	switch {
	case errors.Is(err, pack.ErrTooLarge):
		return math.MaxInt64
	case err != nil:
		return 0
	}
	return size
}

func (e entry) content() ([]byte, error) {
	if !e.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a file: %w", fs.ErrInvalid)
	}
	blob, err := gitobject.GetBlob(e.objects.store, e.hash)
	if err != nil {
		e.objects.mu.Lock()
		defer e.objects.mu.Unlock()
		return nil, e.noteMissing(err)
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// maxTreeBytes is the maximum size of one directory, enough for about a hundred thousand entries.
const maxTreeBytes = 4 << 20

func (e entry) child(t gitobject.TreeEntry) entry {
	return entry{objects: e.objects, path: e.below(t.Name), name: t.Name, hash: t.Hash, mode: t.Mode}
}

// below returns the path of an entry of a directory, even if its name is unusual.
func (e entry) below(name string) string { return strings.TrimPrefix(e.path+"/"+name, "./") }

// list returns the entries of a directory, sorted by name.
func (e entry) list() ([]gitobject.TreeEntry, error) {
	e.objects.mu.Lock()
	defer e.objects.mu.Unlock()
	if listed, ok := e.objects.trees[e.hash]; ok {
		return listed, nil
	}
	if size, err := e.objects.store.EncodedObjectSize(e.hash); err == nil && size > maxTreeBytes {
		return nil, fmt.Errorf("has too many entries: its listing is larger than %s", pack.Size(maxTreeBytes))
	}
	tree, err := gitobject.GetTree(e.objects.store, e.hash)
	if err != nil {
		return nil, e.noteMissing(err)
	}
	slices.SortFunc(tree.Entries, func(a, b gitobject.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	for i, t := range tree.Entries {
		if i > 0 && t.Name == tree.Entries[i-1].Name {
			return nil, fmt.Errorf("contains %q twice", e.below(t.Name))
		}
	}
	e.objects.trees[e.hash] = tree.Entries
	return tree.Entries, nil
}

// Missing returns an error that names the first requested file or directory that the store lacks, or nil. If the error
// is not nil, the files that were read do not match the commit.
func (g Tree) Missing() error {
	g.root.objects.mu.Lock()
	defer g.root.objects.mu.Unlock()
	return g.root.objects.missing
}

// noteMissing records that the store lacks the object of the entry, if that is why it cannot be read.
func (e entry) noteMissing(err error) error {
	lacks := errors.Is(err, plumbing.ErrObjectNotFound) &&
		errors.Is(e.objects.store.HasEncodedObject(e.hash), plumbing.ErrObjectNotFound)
	if lacks && e.objects.missing == nil {
		e.objects.missing = fmt.Errorf("the object %s of %s is missing", e.hash, e.path)
	}
	return err
}

type file struct {
	entry
	*bytes.Reader
}

func (f *file) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *file) Close() error               { return nil }
func (f *file) Size() int64                { return f.Reader.Size() }

type directory struct {
	entry
	read int
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.entry, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.path, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, or all remaining entries if n is not positive.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	listed, err := d.list()
	if err != nil {
		return nil, err
	}
	if d.read == 0 && !d.objects.show(len(listed)) {
		return nil, fmt.Errorf("is not read: more than %d files and directories have been listed; "+
			"name a smaller path", d.objects.maxShown)
	}
	left := listed[d.read:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(left) {
		left = left[:n]
	}
	d.read += len(left)
	entries := make([]fs.DirEntry, len(left))
	for i, t := range left {
		entries[i] = d.child(t)
	}
	return entries, nil
}

// show counts entries and reports whether they may be returned.
func (o *objects) show(entries int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown += entries
	return o.shown <= o.maxShown
}
