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

// Reading says how to read a backup.
type Reading struct {
	Identities []age.Identity
	// MaxBytes is how large a snapshot may be; 0 stands for any size.
	MaxBytes int64
	Inspect  Inspector
	Progress Progress
}

// ErrDamaged is a backup that is not what was stored, or holds no sound database.
var ErrDamaged = errors.New("the backup is damaged")

// Fetch reads a backup into a file that must not exist, as the member sent it, and proves it: the
// checksums of what is stored and of what was sent, every page, and that it holds what its manifest
// says. The file is there only if all of that is right. Only what is stored otherwise than the
// manifest says is ErrDamaged: what cannot be read, or inspected, says nothing about the backup.
func Fetch(
	ctx context.Context, from store.Bucket, m store.Manifest, path string, r Reading,
) (facts snapshot.Facts, err error) {
	if _, err := os.Lstat(path); err == nil {
		return snapshot.Facts{}, fmt.Errorf("fetch a backup: %s: %w", path, os.ErrExist)
	}
	if r.MaxBytes > 0 && m.Snapshot.Bytes > r.MaxBytes {
		return snapshot.Facts{}, fmt.Errorf("fetch %s: %w: %d bytes; --max-bytes raises that", m.DataPath(),
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
		return fmt.Errorf("%w: its data are gone", ErrDamaged)
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
	// One byte more than there should be shows that there are more.
	if _, err := io.Copy(io.MultiWriter(kept, sent), io.LimitReader(plain, m.Snapshot.Bytes+1)); err != nil {
		return blame(err, cmp.Or(raw.err, kept.err))
	}
	if _, err := io.Copy(io.Discard, raw); err != nil {
		return err
	}
	switch {
	case stored.size != m.Bytes || stored.String() != m.SHA256:
		return fmt.Errorf("%w: what is stored is not what the manifest says", ErrDamaged)
	case sent.Size() != m.Snapshot.Bytes || sent.Sum() != m.Snapshot.SHA256:
		return fmt.Errorf("%w: it does not hold what the manifest says", ErrDamaged)
	}
	if err := sent.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// source and sink note their own errors, which say nothing about what was read.
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

// blame says whose fault an error is: the store's or the disk's, if they had one, or that of who has
// not the key; or else the backup is damaged.
func blame(err, edge error) error {
	switch {
	case edge != nil:
		return edge
	case errors.Is(err, ErrEncrypted):
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// check holds what a snapshot holds against what the manifest says. The bytes are those that were
// proven when the backup was taken, so whatever is wrong now is wrong with this machine, or the
// manifest lies.
func (r Reading) check(ctx context.Context, file string, m store.Manifest) (snapshot.Facts, error) {
	r.Progress.Step("check every page")
	facts, err := r.Inspect(ctx, file)
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("its bytes are those that were stored, but %w", err)
	}
	if !facts.Equal(m.Snapshot.Facts) {
		return snapshot.Facts{}, fmt.Errorf("%w: it does not hold what the manifest says", store.ErrManifest)
	}
	return facts, nil
}

// Verify reads a backup back, and says what was found; what could not be read is an error.
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
