// Package disk provides file operations that backups need and package os lacks.
package disk

import (
	"context"
	"errors"
	"io"
	"os"
)

// Sync flushes a file, or a directory's entries, to disk.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Move renames a directory unless the new name exists, in which case it returns os.ErrExist. On systems that cannot
// check and rename atomically, Move may replace an empty directory that was created in between, but never anything
// else.
func Move(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: os.ErrExist}
	}
	return move(from, to)
}

// Until returns a reader that fails once ctx is done, because file reads do not check a context themselves.
func Until(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
