// Package disk is what backups need of files besides package os.
package disk

import (
	"context"
	"errors"
	"io"
	"os"
)

// Sync writes a file, or the names in a directory, to the disk for good.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Move renames a directory unless there is something of the new name: os.ErrExist. Where the system
// cannot do both in one step, what is made in between is replaced if it is an empty directory, and
// nothing else is.
func Move(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: os.ErrExist}
	}
	return move(from, to)
}

// Until reads until its context ends, which reading a file does not look at.
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
