package manifests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"quorate.dev/quorate/gitsource/visible"
)

// files reads the files of one revision within bounds. Going past a bound on the whole is
// remembered: what was read then is not all that is declared.
type files struct {
	ctx    context.Context
	fs     fs.FS
	limits Limits

	count, nodes, documents int
	size                    int64
	exceeded                error
}

// read returns the content of a file.
func (f *files) read(name string) ([]byte, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if f.count++; f.count > f.limits.Files {
		return nil, f.exceed("more than %d files are read", f.limits.Files)
	}
	info, err := fs.Stat(f.fs, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > f.limits.FileBytes {
		return nil, fmt.Errorf("is larger than %s", mebibytes(f.limits.FileBytes))
	}
	if f.size += info.Size(); f.size > f.limits.TotalBytes {
		return nil, f.exceed("more than %s are read", mebibytes(f.limits.TotalBytes))
	}
	return fs.ReadFile(f.fs, name)
}

func (f *files) exceed(format string, args ...any) error {
	f.exceeded = fmt.Errorf(format+"; name a smaller path", args...)
	return f.exceeded
}

// list returns the entries of a directory, by name.
func (f *files) list(dir string) ([]fs.DirEntry, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.fs, dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !visible.IsFileName(e.Name()) {
			return nil, fmt.Errorf("holds an entry named %q, which is no name of a file", e.Name())
		}
	}
	return entries, nil
}

// checkDirectory says why dir cannot be the directory to read. No part of its path may be
// a symbolic link or a submodule: neither is followed.
func (f *files) checkDirectory(dir string) error {
	here := "."
	for part := range strings.SplitSeq(dir, "/") {
		here = path.Join(here, part)
		info, err := fs.Lstat(f.fs, here)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("there is no %s", here)
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is %s, not a directory", here, kindOf(info.Mode()))
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
