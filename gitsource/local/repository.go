package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
	"github.com/go-git/go-git/v5/storage/memory"

	"quorate.dev/quorate/gitsource/pack"
	"quorate.dev/quorate/gitsource/refs"
)

// Repository reads the objects and references of a repository.
type Repository struct {
	pack.ReadOnly
	layout  Layout
	storage *filesystem.Storage
	objects []*filesystem.ObjectStorage
}

var _ storer.EncodedObjectStorer = (*Repository)(nil)

// Open opens the repository with the given layout. It returns an error if the storage format is not supported.
func Open(l Layout) (*Repository, error) {
	if err := l.checkFormat(); err != nil {
		return nil, err
	}
	var common billy.Filesystem
	if l.Common != l.Dir {
		common = osfs.New(l.Common)
	}
	objects := cache.NewObjectLRUDefault()
	files := validReferences{regularFiles{dotgit.NewRepositoryFilesystem(osfs.New(l.Dir), common)}}
	r := &Repository{layout: l, storage: filesystem.NewStorage(files, objects)}
	for _, dir := range l.Objects {
		r.objects = append(r.objects,
			filesystem.NewObjectStorage(dotgit.New(regularFiles{osfs.New(filepath.Dir(dir))}), objects))
	}
	return r, nil
}

// regularFiles is a git directory in which only regular files can be opened, because a named pipe would block the
// reader.
type regularFiles struct{ billy.Filesystem }

// Open opens a regular file, or a link to one.
func (r regularFiles) Open(name string) (billy.File, error) {
	info, err := r.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return r.Filesystem.Open(name)
}

// validReferences is a git directory that hides files below refs that are not references. Git also ignores these files:
// they are its own lock files, or were left by file managers.
type validReferences struct{ billy.Filesystem }

// ReadDir lists a directory.
func (v validReferences) ReadDir(path string) ([]os.FileInfo, error) {
	listed, err := v.Filesystem.ReadDir(path)
	path = filepath.ToSlash(path)
	if path != "refs" && !strings.HasPrefix(path, "refs/") {
		return listed, err
	}
	kept := listed[:0]
	for _, info := range listed {
		if info.IsDir() || plumbing.ReferenceName(path+"/"+info.Name()).Validate() == nil {
			kept = append(kept, info)
		}
	}
	return kept, err
}

// References lists the references that a server of the repository would list.
func (r *Repository) References() (refs.List, error) {
	list, all := refs.List{ByName: map[string]plumbing.Hash{}}, memory.ReferenceStorage{}
	read, err := r.storage.IterReferences()
	if err != nil {
		return refs.List{}, err
	}
	_ = read.ForEach(func(r *plumbing.Reference) error { return all.SetReference(r) }) // neither call fails
	for name := range all {
		// A reference that cannot be resolved names a branch without commits, or itself.
		if resolved, err := storer.ResolveReference(all, name); err == nil {
			list.ByName[name.String()] = resolved.Hash()
		}
	}
	head, err := storer.ResolveReference(all, plumbing.HEAD)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return list, nil
	}
	if err != nil {
		return refs.List{}, fmt.Errorf("HEAD: %w", err)
	}
	list.Head, list.HeadName = head.Hash(), head.Name()
	return list, nil
}

// Shallow returns the commits whose parents are missing because the repository is a shallow clone.
func (r *Repository) Shallow() ([]plumbing.Hash, error) { return r.storage.Shallow() }

// with returns the object directory that contains the object.
func (r *Repository) with(hash plumbing.Hash) (*filesystem.ObjectStorage, error) {
	for _, objects := range r.objects {
		if err := objects.HasEncodedObject(hash); !errors.Is(err, plumbing.ErrObjectNotFound) {
			return objects, err
		}
	}
	return nil, plumbing.ErrObjectNotFound
}

// EncodedObject returns an object.
func (r *Repository) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	objects, err := r.with(hash)
	if err != nil {
		return nil, err
	}
	return objects.EncodedObject(kind, hash)
}

// EncodedObjectSize returns the size of an object.
func (r *Repository) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	objects, err := r.with(hash)
	if err != nil {
		return 0, err
	}
	return objects.EncodedObjectSize(hash)
}

// HasEncodedObject returns plumbing.ErrObjectNotFound if the repository lacks the object.
func (r *Repository) HasEncodedObject(hash plumbing.Hash) error {
	_, err := r.with(hash)
	return err
}

// WhyIncomplete returns why the repository may lack objects, and what to do about it. It returns "" if the reason is
// unknown.
func (r *Repository) WhyIncomplete() string {
	switch {
	case r.isPartial():
		return "it is a partial clone; to fetch the rest, run git fetch --refetch --no-filter"
	case len(r.layout.Unread) > 0:
		return r.layout.Unread[0]
	}
	if shallow, err := r.Shallow(); err == nil && len(shallow) > 0 {
		return "it is a shallow clone; to fetch the rest, run git fetch --unshallow"
	}
	return ""
}

// isPartial reports whether the repository is a partial clone: its server promised to send missing objects later.
func (r *Repository) isPartial() bool {
	for _, dir := range r.layout.Objects {
		listed, err := os.ReadDir(filepath.Join(dir, "pack"))
		if err != nil {
			continue
		}
		for _, entry := range listed {
			if strings.HasSuffix(entry.Name(), ".promisor") {
				return true
			}
		}
	}
	return false
}
