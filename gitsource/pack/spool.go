package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// memoryBytes of a pack are kept in memory before a file is needed: most repositories that declare
// clusters need none.
const memoryBytes = 4 << 20

// spool is a pack that can be read anywhere in it.
type spool struct {
	io.ReaderAt
	size int64
	file *os.File
}

// newSpool reads r to its end. What does not fit into memory goes into a temporary file that has no
// name any more.
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
		return nil, fmt.Errorf("keep a pack of more than %s: %w; TMPDIR names the directory for it",
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

// Close gives the disk space back.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// reader reads the pack from its start until ctx ends.
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
