package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// openCommit gives the files of a revision whose hash names a commit or a tag of one.
func openCommit(store storer.EncodedObjectStorer, r Revision, location string) (fs.FS, Revision, error) {
	commit, err := peel(store, plumbing.NewHash(r.Commit))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, Revision{}, sourceErrorf("%s has no commit %s", location, r.Commit)
	}
	if err != nil {
		return nil, Revision{}, sourceError(err, "read %s of %s", r, location)
	}
	r.Commit = commit.Hash.String()
	return newGitFS(store, commit.TreeHash), r, nil
}

// peel follows tags of tags to their commit.
func peel(store storer.EncodedObjectStorer, hash plumbing.Hash) (*gitobject.Commit, error) {
	const maxTags = 10
	for range maxTags {
		tag, err := gitobject.GetTag(store, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return gitobject.GetCommit(store, hash)
		}
		if err != nil {
			return nil, err
		}
		if tag.TargetType != plumbing.TagObject && tag.TargetType != plumbing.CommitObject {
			return nil, fmt.Errorf("the tag %s is of a %s, not of a commit", tag.Name, tag.TargetType)
		}
		hash = tag.Target
	}
	return nil, fmt.Errorf("the tag is of a tag of a tag, more than %d deep", maxTags)
}

// gitFS is the tree of one commit. Symbolic links are not followed and submodules not
// entered; ReadDir shows them for what they are.
type gitFS struct{ root gitEntry }

var _ fs.ReadLinkFS = gitFS{}

func newGitFS(store storer.EncodedObjectStorer, root plumbing.Hash) gitFS {
	objects := &gitObjects{store: store, trees: map[plumbing.Hash][]gitEntry{}}
	return gitFS{root: gitEntry{objects: objects, name: ".", hash: root, mode: filemode.Dir}}
}

// gitObjects keeps the trees that were read: paths are looked up part by part.
type gitObjects struct {
	store storer.EncodedObjectStorer
	mu    sync.Mutex
	trees map[plumbing.Hash][]gitEntry
}

// Open opens a file or a directory.
func (g gitFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	entry, err := g.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if entry.IsDir() {
		return &gitDir{gitEntry: entry}, nil
	}
	content, err := entry.content()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &gitFile{gitEntry: entry, Reader: bytes.NewReader(content)}, nil
}

// Stat tells what name is without reading its content.
func (g gitFS) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	entry, err := g.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return entry, nil
}

// Lstat is Stat: nothing is followed.
func (g gitFS) Lstat(name string) (fs.FileInfo, error) { return g.Stat(name) }

// ReadLink reads no link: nothing is followed.
func (g gitFS) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

func (g gitFS) find(name string) (gitEntry, error) {
	entry := g.root
	if name == "." {
		return entry, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !entry.IsDir() {
			return entry, fs.ErrNotExist
		}
		children, err := entry.children()
		if err != nil {
			return entry, err
		}
		i := slices.IndexFunc(children, func(c gitEntry) bool { return c.name == part })
		if i < 0 {
			return entry, fs.ErrNotExist
		}
		entry = children[i]
	}
	return entry, nil
}

// gitEntry is one entry of a tree: a fs.FileInfo and a fs.DirEntry.
type gitEntry struct {
	objects *gitObjects
	name    string
	hash    plumbing.Hash
	mode    filemode.FileMode
}

func (e gitEntry) Name() string               { return e.name }
func (e gitEntry) IsDir() bool                { return e.mode == filemode.Dir }
func (e gitEntry) ModTime() time.Time         { return time.Time{} }
func (e gitEntry) Sys() any                   { return nil }
func (e gitEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e gitEntry) Type() fs.FileMode          { return e.Mode().Type() }
func (e gitEntry) String() string             { return fs.FormatDirEntry(e) }

func (e gitEntry) Mode() fs.FileMode {
	switch e.mode {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o444
	case filemode.Submodule:
		return fs.ModeIrregular | 0o444
	default:
		return 0o444
	}
}

// Size is that of the content; 0 if it is unknown.
func (e gitEntry) Size() int64 {
	size, err := e.objects.store.EncodedObjectSize(e.hash)
	if err != nil || e.IsDir() {
		return 0
	}
	return size
}

func (e gitEntry) content() ([]byte, error) {
	if !e.mode.IsFile() || e.mode == filemode.Symlink {
		return nil, fmt.Errorf("is no file: %w", fs.ErrInvalid)
	}
	if e.Size() > maxFileBytes {
		return nil, errFileTooLarge
	}
	blob, err := gitobject.GetBlob(e.objects.store, e.hash)
	if err != nil {
		return nil, err
	}
	r, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxFileBytes+1))
}

// children are the entries of a directory, by name.
func (e gitEntry) children() ([]gitEntry, error) {
	e.objects.mu.Lock()
	defer e.objects.mu.Unlock()
	if children, ok := e.objects.trees[e.hash]; ok {
		return children, nil
	}
	tree, err := gitobject.GetTree(e.objects.store, e.hash)
	if err != nil {
		return nil, err
	}
	children := make([]gitEntry, 0, len(tree.Entries))
	for _, t := range tree.Entries {
		if !isFileName(t.Name) {
			return nil, fmt.Errorf("holds an entry named %q, which is no name of a file", t.Name)
		}
		children = append(children, gitEntry{objects: e.objects, name: t.Name, hash: t.Hash, mode: t.Mode})
	}
	slices.SortFunc(children, func(a, b gitEntry) int { return strings.Compare(a.name, b.name) })
	e.objects.trees[e.hash] = children
	return children, nil
}

// isFileName refuses what git can store and no honest repository holds: names that are
// paths, and names that would garble a report.
func isFileName(name string) bool {
	return fs.ValidPath(name) && name != "." && path.Base(name) == name && isPrintable(name)
}

type gitFile struct {
	gitEntry
	*bytes.Reader
}

func (f *gitFile) Stat() (fs.FileInfo, error) { return f.gitEntry, nil }
func (f *gitFile) Close() error               { return nil }
func (f *gitFile) Size() int64                { return f.Reader.Size() }

type gitDir struct {
	gitEntry
	read int
}

func (d *gitDir) Stat() (fs.FileInfo, error) { return d.gitEntry, nil }
func (d *gitDir) Close() error               { return nil }
func (d *gitDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, or all that are left if n is not positive.
func (d *gitDir) ReadDir(n int) ([]fs.DirEntry, error) {
	children, err := d.children()
	if err != nil {
		return nil, err
	}
	left := children[d.read:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(left) {
		left = left[:n]
	}
	d.read += len(left)
	entries := make([]fs.DirEntry, len(left))
	for i, c := range left {
		entries[i] = c
	}
	return entries, nil
}
