// Package snapshot knows the files that etcd's Snapshot call yields: a bbolt database, followed by
// the SHA-256 of it. It checks one while it is received, says what one holds, and makes a data
// directory of it. It is the only package that links the server of etcd.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// pageSize is what a database is a multiple of, whatever machine wrote it: bbolt's pages are as
// large as those of the machine, and none has smaller ones.
const pageSize = 512

// ErrTruncated is a snapshot that ends before its checksum does.
var ErrTruncated = errors.New("the snapshot is cut off")

// ErrChecksum is a snapshot that is not what the member sent.
var ErrChecksum = errors.New("the snapshot does not match the checksum at its end")

// Trailer holds what is written to it against the checksum at its end. The last message of etcd's
// stream is that checksum, over all that came before (etcd's api/v3rpc/maintenance.go).
type Trailer struct {
	body hash.Cloner
	tail []byte // the newest bytes, which may be the checksum
	size int64
}

// NewTrailer returns one that has seen nothing.
func NewTrailer() *Trailer {
	return &Trailer{body: sha256.New().(hash.Cloner)} // as all hashes of the standard library are
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

// Check reports whether all has been seen, and unchanged: ErrTruncated or ErrChecksum if not.
func (t *Trailer) Check() error {
	switch {
	case t.size <= sha256.Size, (t.size-sha256.Size)%pageSize != 0:
		return fmt.Errorf("%w: it has %d bytes", ErrTruncated, t.size)
	case !bytes.Equal(t.body.Sum(nil), t.tail):
		return ErrChecksum
	}
	return nil
}

// Size is the number of bytes seen.
func (t *Trailer) Size() int64 { return t.size }

// Sum is the SHA-256 of all that was seen, with the checksum at its end, in hexadecimal digits.
func (t *Trailer) Sum() string {
	all, err := t.body.Clone()
	if err != nil {
		panic(err) // only a hash made of others may be one that cannot be cloned
	}
	all.Write(t.tail)
	return hex.EncodeToString(all.Sum(nil))
}
