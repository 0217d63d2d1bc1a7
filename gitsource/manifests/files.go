package manifests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// files reads the files of one revision within limits. If a limit on the whole source is exceeded, the error is kept,
// because the declarations that were read are then incomplete.
type files struct {
	ctx     context.Context
	tree    tree
	options Options
	limits  Limits
	// rendering is called with the name of each kustomization before it is rendered.
	rendering func(root string)
	// kinds caches the file types of names.
	kinds map[string]known

	count, nodes, documents, objects int
	// size is the number of bytes read, declared is the number of bytes declared, and told is the number of problems
	// found.
	size, declared int64
	told           int
	exceeded       error
}

type known struct {
	kind fs.FileMode
	err  error
}

// kind returns the type of the file called name.
func (f *files) kind(name string) (fs.FileMode, error) {
	k, ok := f.kinds[name]
	if !ok {
		if f.kinds == nil {
			f.kinds = map[string]known{}
		}
		k.kind, k.err = f.tree.kind(name)
		f.kinds[name] = k
	}
	return k.kind, k.err
}

// read returns the content of a file.
func (f *files) read(name string) ([]byte, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if f.count++; f.count > f.limits.Files {
		return nil, f.exceed(settingObjects, "more than %d files are read", f.limits.Files)
	}
	content, err := f.tree.read(name)
	if err != nil {
		return nil, err
	}
	if f.size += int64(len(content)); f.size > f.limits.TotalBytes {
		return nil, f.exceed(settingBytes, "more than %s are read", mebibytes(f.limits.TotalBytes))
	}
	return content, nil
}

// list returns the entries of a directory, sorted by name.
func (f *files) list(dir string) ([]entry, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := f.tree.list(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Unsupported && !printable.IsFileName(e.Name) {
			return nil, fmt.Errorf("contains an entry named %q, which is not a file name", e.Name)
		}
	}
	return entries, nil
}

// checkDirectory returns an error if dir cannot be read as a directory. It also returns an error if a part of the path
// is a symbolic link or a submodule, because these are not followed.
func (f *files) checkDirectory(dir string) error {
	here := "."
	for part := range strings.SplitSeq(dir, "/") {
		here = path.Join(here, part)
		kind, err := f.kind(here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return MissingError{here}
		case err != nil:
			return err
		case !kind.IsDir():
			return fmt.Errorf("%s is %s, not a directory", here, kindOf(kind))
		}
	}
	return nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeIrregular != 0:
		return "a submodule"
	case mode.IsRegular():
		return "a file"
	default:
		return "a special file"
	}
}
