package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
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

// Options say what to read and how.
type Options struct {
	// Location is the URL of a smart HTTP(S) server, the path of a local repository,
	// bare or not, or the path of a local directory that is no repository. Of a local
	// repository, what is committed is read, not the worktree.
	Location string
	// Branch, Tag and Commit name a revision; one of them at most. Without any, it is
	// the one that HEAD names. A Commit is written with all of its 40 hexadecimal digits.
	Branch, Tag, Commit string
	// Path is the directory to read, relative to the root; the root if it is empty.
	Path string
	// Namespace is that of objects that name none; "default" if it is empty.
	Namespace string
	// Auth is for repositories that are not public.
	Auth Auth
}

// Desired is what a source declares.
type Desired struct {
	Revision Revision
	// Clusters without problems, by namespace and name.
	Clusters []Declared
	// Problems of all files, by file and line. If there are any, Clusters may lack some
	// that are declared: those that a Problem names, and, where a Problem names none,
	// others.
	Problems []Problem
}

// Declared is one cluster as git declares it.
type Declared struct {
	// Cluster with its defaults, its namespace and its TypeMeta.
	Cluster v1alpha1.EtcdCluster
	// Applied is the object as it stands in git, without defaults, for server-side
	// apply: apiVersion, kind, metadata (name, namespace, labels, annotations) and spec,
	// in the types of JSON, integers as int64.
	Applied map[string]any
	// File is relative to the root of the source. Line is where the object starts in
	// it; 0 if that is unknown.
	File string
	Line int
	// Warnings are about what is valid and may yet not be meant.
	Warnings []string
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
	desired, err := read(ctx, files, o)
	if err != nil {
		return Desired{}, err
	}
	desired.Revision = revision
	return desired, nil
}

// Check returns what is wrong with the options themselves, before anything is read. It matches ErrOptions.
func (o Options) Check() error {
	_, err := o.normalized()
	return err
}

// open gives the files of the revision that o names.
func open(ctx context.Context, o Options) (fs.FS, Revision, error) {
	if isURL(o.Location) {
		return openRemote(ctx, o)
	}
	return openLocal(o)
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
