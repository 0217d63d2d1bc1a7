package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// Reading specifies how to read a backup.
type Reading struct {
	Identities []age.Identity
	// MaxBytes is the maximum size of a snapshot; 0 means no limit.
	MaxBytes int64
	Inspect  Inspector
	Progress Progress
}

// ErrDamaged is returned for a backup that has changed since it was stored, or does not contain a sound database.
var ErrDamaged = errors.New("the backup is damaged")

// Fetch reads a backup into a new file, in the form in which the member sent it. It verifies the checksums of the
// stored and the original bytes, checks every page, and compares the content with the manifest. The file exists only if
// all checks pass. Fetch returns ErrDamaged only if the stored bytes do not match the manifest, because a failure to
// read or inspect a backup is not evidence of damage.
func Fetch(
	ctx context.Context, from store.Bucket, m store.Manifest, path string, r Reading,
) (facts snapshot.Facts, err error) {
	if _, err := os.Lstat(path); err == nil {
		return snapshot.Facts{}, fmt.Errorf("fetch a backup: %s: %w", path, os.ErrExist)
	}
	if r.MaxBytes > 0 && m.Snapshot.Bytes > r.MaxBytes {
		return snapshot.Facts{}, fmt.Errorf("fetch %s: %w: %d bytes; to raise the limit, set --max-bytes", m.DataPath(),
			ErrTooLarge, m.Snapshot.Bytes)
	}
	file, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("fetch a backup: %w", err)
	}
	defer leave(file.Name())
	if err = errors.Join(fetch(ctx, from, m, file, r), file.Sync(), file.Close()); err == nil {
		facts, err = r.check(ctx, file.Name(), m)
	}
	if err == nil {
		err = name(file.Name(), path)
	}
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("fetch %s: %w", m.DataPath(), err)
	}
	return facts, nil
}

func fetch(ctx context.Context, from store.Bucket, m store.Manifest, to io.Writer, r Reading) error {
	object, err := from.Open(ctx, m.DataPath())
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: its data is missing", ErrDamaged)
	}
	if err != nil {
		return err
	}
	defer object.Close()
	stored, sent := newDigest(), snapshot.NewTrailer()
	raw := &source{r: io.TeeReader(io.LimitReader(disk.Until(ctx, object), m.Bytes+1),
		io.MultiWriter(stored, r.Progress.counter("fetch", m.Bytes)))}
	kept := &sink{w: to}
	plain, free, err := decoder(m, raw, r.Identities)
	if err != nil {
		return blame(err, raw.err)
	}
	defer free()
	// Reading one byte more than expected detects data that is too long.
	if _, err := io.Copy(io.MultiWriter(kept, sent), io.LimitReader(plain, m.Snapshot.Bytes+1)); err != nil {
		return blame(err, cmp.Or(raw.err, kept.err))
	}
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return err
	}
	switch {
	case stored.size != m.Bytes || stored.String() != m.SHA256:
		return fmt.Errorf("%w: the stored data does not match the manifest", ErrDamaged)
	case sent.Size() != m.Snapshot.Bytes || sent.Sum() != m.Snapshot.SHA256:
		return fmt.Errorf("%w: its content does not match the manifest", ErrDamaged)
	}
	if err := sent.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// source is a reader that records its own error. Like an error of a sink, this error is not evidence of damage.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// blame returns the cause of an error. If the store or the disk failed, the cause is their error, edge. Otherwise,
// either the key is missing or the backup is damaged.
func blame(err, edge error) error {
	switch {
	case edge != nil:
		return edge
	case errors.Is(err, ErrEncrypted):
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// check compares the content of a snapshot with the manifest. The bytes are the same as when the backup was taken and
// proven, so a failure means that this machine has a problem or that the manifest is wrong.
func (r Reading) check(ctx context.Context, file string, m store.Manifest) (snapshot.Facts, error) {
	r.Progress.Step("check every page")
	facts, err := r.Inspect(ctx, file)
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("the stored bytes are intact, but %w", err)
	}
	if !facts.Equal(m.Snapshot.Facts) {
		return snapshot.Facts{}, fmt.Errorf("%w: its content does not match the manifest", store.ErrManifest)
	}
	return facts, nil
}

// Verify reads a stored backup and returns the result, which includes any damage. If the backup cannot be read, Verify
// returns an error.
func Verify(
	ctx context.Context, from store.Bucket, m store.Manifest, spool string, r Reading,
) (store.Verification, error) {
	dir, err := os.MkdirTemp(spool, "verify-")
	if err != nil {
		return store.Verification{}, fmt.Errorf("verify a backup: %w", err)
	}
	defer leave(dir)
	found, err := store.BeginVerification(ctx, from, m)
	if err != nil {
		return store.Verification{}, err
	}
	_, err = Fetch(ctx, from, m, filepath.Join(dir, "snapshot.db"), r)
	if errors.Is(err, ErrDamaged) {
		found.Damage = err.Error()
		return found, nil
	}
	return found, err
}
