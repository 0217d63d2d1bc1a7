package manifests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"quorate.dev/quorate/gitsource/visible"
)

// files reads the files of one revision within bounds. Going past a bound on the whole is
// remembered: what was read then is not all that is declared.
type files struct {
	ctx     context.Context
	fs      fs.FS
	options Options
	limits  Limits

	count, nodes, documents, objects int
	size                             int64
	exceeded                         error
}

// read returns the content of a file.
func (f *files) read(name string) ([]byte, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if f.count++; f.count > f.limits.Files {
		return nil, f.exceed("max-files", "more than %d files are read", f.limits.Files)
	}
	tooLarge := errors.New(over("max-file-bytes", "is larger than %s", mebibytes(f.limits.FileBytes)))
	if info, err := fs.Stat(f.fs, name); err == nil && info.Size() > f.limits.FileBytes {
		return nil, tooLarge
	}
	file, err := f.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, f.limits.FileBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > f.limits.FileBytes {
		return nil, tooLarge
	}
	if f.size += int64(len(content)); f.size > f.limits.TotalBytes {
		return nil, f.exceed("max-total-bytes", "more than %s are read", mebibytes(f.limits.TotalBytes))
	}
	return content, nil
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
