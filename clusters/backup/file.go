package backup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// The magic numbers of encoded files.
var (
	ageMagic  = []byte("age-encryption.org/")
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// Decode decodes a backup file in any encoding into a new file, in the form in which the member sent it. It verifies
// every page and the checksum at the end.
func Decode(ctx context.Context, from, path string, r Reading) (facts snapshot.Facts, err error) {
	in, err := os.Open(from)
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("read a backup: %w", err)
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("read a backup: %w", err)
	}
	defer leave(out.Name())
	if err = errors.Join(r.decode(ctx, in, out), out.Sync(), out.Close()); err == nil {
		r.Progress.Step("check every page")
		facts, err = r.Inspect(ctx, out.Name())
	}
	if err == nil {
		err = name(out.Name(), path)
	}
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("read %s: %w", from, err)
	}
	return facts, nil
}

// decode removes all the layers of encoding that it detects.
func (r Reading) decode(ctx context.Context, in *os.File, out io.Writer) error {
	var size int64
	if info, err := in.Stat(); err == nil {
		size = info.Size()
	}
	stored := io.TeeReader(disk.Until(ctx, in), r.Progress.counter("read", size))
	for _, layer := range []struct {
		magic []byte
		is    store.Manifest
	}{{ageMagic, store.Manifest{Encryption: store.Age}}, {zstdMagic, store.Manifest{Compression: store.Zstd}}} {
		buffered := bufio.NewReader(stored)
		start, _ := buffered.Peek(len(layer.magic)) // a shorter file is later reported as truncated
		stored = buffered
		if !bytes.Equal(start, layer.magic) {
			continue
		}
		plain, free, err := decoder(layer.is, stored, r.Identities)
		if err != nil {
			return err
		}
		defer free()
		stored = plain
	}
	trailer := snapshot.NewTrailer()
	if err := copyUpTo(r.MaxBytes, io.MultiWriter(out, trailer), stored); err != nil {
		return err
	}
	return trailer.Check()
}
