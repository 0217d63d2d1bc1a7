package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"quorate.dev/quorate/gitsource/refs"
)

// openLocal opens a repository in place, or else a directory.
func openLocal(o Options) (fs.FS, refs.Revision, error) {
	info, err := os.Stat(o.Location)
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "open %s", o.Location)
	}
	if !info.IsDir() {
		return nil, refs.Revision{}, sourceErrorf("%s is a file; a source is a directory or a repository", o.Location)
	}
	repository, err := git.PlainOpenWithOptions(o.Location, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return openDirectory(o)
	}
	if errors.Is(err, git.ErrUnknownExtension) || errors.Is(err, git.ErrUnsupportedExtensionRepositoryFormatVersion) {
		return nil, refs.Revision{}, sourceError(err, "open the repository %s: git with SHA-1 and without extensions is supported", o.Location)
	}
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "open the repository %s", o.Location)
	}
	list, err := listReferences(repository)
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "read the references of %s", o.Location)
	}
	revision, err := list.Find(o.Selector)
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "find what to read in %s", o.Location)
	}
	return openCommit(repository.Storer, revision, o)
}

func openDirectory(o Options) (fs.FS, refs.Revision, error) {
	if o.Selector != (refs.Selector{}) {
		return nil, refs.Revision{}, optionsErrorf("%s is no repository: it has neither branches nor tags nor commits", o.Location)
	}
	if o.Verify.Mode != "" {
		return nil, refs.Revision{}, sourceErrorf("%s is no repository: nothing in it is signed, and signatures are to be verified", o.Location)
	}
	if _, err := os.Stat(filepath.Join(o.Location, ".git")); err == nil {
		return nil, refs.Revision{}, sourceErrorf("%s has a .git that is no repository", o.Location)
	}
	root, err := os.OpenRoot(o.Location)
	if err != nil {
		return nil, refs.Revision{}, sourceError(err, "open %s", o.Location)
	}
	return root.FS(), refs.Revision{}, nil
}

// listReferences lists what a server of that repository would show.
func listReferences(repository *git.Repository) (refs.List, error) {
	list := refs.List{ByName: map[string]plumbing.Hash{}}
	all, err := repository.References()
	if err != nil {
		return refs.List{}, err
	}
	err = all.ForEach(func(r *plumbing.Reference) error {
		resolved, err := repository.Reference(r.Name(), true)
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			return nil // it names a branch that has no commit yet
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name(), err)
		}
		list.ByName[r.Name().String()] = resolved.Hash()
		return nil
	})
	if err != nil {
		return refs.List{}, err
	}
	head, err := repository.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return list, nil
	}
	if err != nil {
		return refs.List{}, fmt.Errorf("HEAD: %w", err)
	}
	list.Head, list.HeadName = head.Hash(), head.Name()
	return list, nil
}
