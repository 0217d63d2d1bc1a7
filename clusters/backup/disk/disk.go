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
