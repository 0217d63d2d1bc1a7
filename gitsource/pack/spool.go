package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// memoryBytes is the maximum size of a pack that is kept in memory. Larger packs are stored in a file. The packs of
// most repositories that declare clusters are smaller.
const memoryBytes = 4 << 20

// spool is a stored pack with random access.
type spool struct {
	io.ReaderAt
	size int64
	file *os.File
}

// newSpool reads r to its end. A pack that is too large for memory is written to a temporary file that has already been
// unlinked.
func newSpool(r io.Reader, dir string) (*spool, error) {
	var start bytes.Buffer
	size, err := io.CopyN(&start, r, memoryBytes)
	if errors.Is(err, io.EOF) {
		return &spool{ReaderAt: bytes.NewReader(start.Bytes()), size: size}, nil
	}
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, ".quorate-pack-*")
	if err != nil {
		return nil, fmt.Errorf("store a pack of more than %s: %w; to use a different directory, set TMPDIR",
			Size(memoryBytes), err)
	}
	s := &spool{ReaderAt: file, file: file}
	if err := os.Remove(file.Name()); err != nil {
		s.Close()
		return nil, err
	}
	if s.size, err = io.Copy(file, io.MultiReader(&start, r)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close frees the disk space.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// reader returns a reader for the whole pack that fails once ctx ends.
func (s *spool) reader(ctx context.Context) io.ReadSeeker {
	return &untilDone{ctx, io.NewSectionReader(s.ReaderAt, 0, s.size)}
}

type untilDone struct {
	ctx context.Context
	io.ReadSeeker
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.ReadSeeker.Read(p)
}
