package gitsource

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// openLocal opens a repository in place, or else a directory.
func openLocal(o Options) (fs.FS, Revision, error) {
	info, err := os.Stat(o.Location)
	if err != nil {
		return nil, Revision{}, sourceError(err, "open %s", o.Location)
	}
	if !info.IsDir() {
		return nil, Revision{}, sourceErrorf("%s is a file; a source is a directory or a repository", o.Location)
	}
	repository, err := git.PlainOpenWithOptions(o.Location, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) {
		return openDirectory(o)
	}
	if errors.Is(err, git.ErrUnknownExtension) || errors.Is(err, git.ErrUnsupportedExtensionRepositoryFormatVersion) {
		return nil, Revision{}, sourceError(err, "open the repository %s: git with SHA-1 and without extensions is supported", o.Location)
	}
	if err != nil {
		return nil, Revision{}, sourceError(err, "open the repository %s", o.Location)
	}
	revision, err := resolveLocal(repository, o)
	if err != nil {
		return nil, Revision{}, err
	}
	return openCommit(repository.Storer, revision, o.Location)
}

func openDirectory(o Options) (fs.FS, Revision, error) {
	if o.Branch != "" || o.Tag != "" || o.Commit != "" {
		return nil, Revision{}, optionsErrorf("%s is no repository: it has neither branches nor tags nor commits", o.Location)
	}
	if _, err := os.Stat(filepath.Join(o.Location, ".git")); err == nil {
		return nil, Revision{}, sourceErrorf("%s has a .git that is no repository", o.Location)
	}
	root, err := os.OpenRoot(o.Location)
	if err != nil {
		return nil, Revision{}, sourceError(err, "open %s", o.Location)
	}
	return root.FS(), Revision{}, nil
}

// resolveLocal finds the reference that o names. The hash may be that of a tag object.
func resolveLocal(repository *git.Repository, o Options) (Revision, error) {
	switch {
	case o.Commit != "":
		return Revision{Commit: o.Commit}, nil
	case o.Branch != "":
		return resolveReference(repository, plumbing.NewBranchReferenceName(o.Branch), o)
	case o.Tag != "":
		return resolveReference(repository, plumbing.NewTagReferenceName(o.Tag), o)
	}
	head, err := repository.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return Revision{}, sourceErrorf("%s has no commit at HEAD; commit something, or name a branch", o.Location)
	}
	if err != nil {
		return Revision{}, sourceError(err, "read HEAD of %s", o.Location)
	}
	return revisionOf(head.Name(), head.Hash()), nil
}

func resolveReference(repository *git.Repository, name plumbing.ReferenceName, o Options) (Revision, error) {
	reference, err := repository.Reference(name, true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return Revision{}, missingReference(name, o.Location)
	}
	if err != nil {
		return Revision{}, sourceError(err, "read %s of %s", name, o.Location)
	}
	return revisionOf(name, reference.Hash()), nil
}

func revisionOf(name plumbing.ReferenceName, hash plumbing.Hash) Revision {
	r := Revision{Commit: hash.String()}
	if name.IsBranch() || name.IsTag() {
		r.Name = name.Short()
	}
	return r
}

func missingReference(name plumbing.ReferenceName, location string) error {
	kind := "branch"
	if name.IsTag() {
		kind = "tag"
	}
	return sourceErrorf("%s has no %s %q", location, kind, name.Short())
}
