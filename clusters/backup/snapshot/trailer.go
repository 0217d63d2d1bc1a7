// Package snapshot handles the files that etcd's Snapshot call returns: a bbolt database followed by its SHA-256. It
// checks a snapshot while it is being received, inspects it, and creates a data directory from it. It is the only
// package that links etcd's server code.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// pageSize is a divisor of the size of every database. bbolt uses the memory page size of the machine that wrote the
// database, which is always a multiple of 512 bytes.
const pageSize = 512

// ErrTruncated is returned for a snapshot that ends before the end of its checksum.
var ErrTruncated = errors.New("the snapshot is truncated")

// ErrChecksum is returned for a snapshot that differs from the snapshot that the member sent.
var ErrChecksum = errors.New("the snapshot does not match the checksum at its end")

// Trailer compares the data written to it with the checksum at the end of that data. The checksum is the last message
// in etcd's stream and covers all previous messages (etcd's api/v3rpc/maintenance.go).
type Trailer struct {
	body hash.Cloner
	tail []byte // the latest bytes, which may be the checksum
	size int64
}

// NewTrailer returns an empty Trailer.
func NewTrailer() *Trailer {
	return &Trailer{body: sha256.New().(hash.Cloner)} // all standard library hashes implement it
}

// Write implements io.Writer. It never fails.
func (t *Trailer) Write(p []byte) (int, error) {
	t.size += int64(len(p))
	t.tail = append(t.tail, p...)
	if done := len(t.tail) - sha256.Size; done > 0 {
		t.body.Write(t.tail[:done])
		t.tail = append(t.tail[:0], t.tail[done:]...)
	}
	return len(p), nil
}

// Check returns ErrTruncated or ErrChecksum unless everything was received and is unchanged.
func (t *Trailer) Check() error {
	switch {
	case t.size <= sha256.Size, (t.size-sha256.Size)%pageSize != 0:
		return fmt.Errorf("%w: it has %d bytes", ErrTruncated, t.size)
	case !bytes.Equal(t.body.Sum(nil), t.tail):
		return ErrChecksum
	}
	return nil
}

// Size returns the number of bytes received.
func (t *Trailer) Size() int64 { return t.size }

// Sum returns the SHA-256 of everything received, including the checksum at the end, as hexadecimal digits.
func (t *Trailer) Sum() string {
	all, err := t.body.Clone()
	if err != nil {
		panic(err) // the standard library's hashes always support cloning
	}
	all.Write(t.tail)
	return hex.EncodeToString(all.Sum(nil))
}
