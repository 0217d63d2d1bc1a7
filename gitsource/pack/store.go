// Package pack reads single objects from an untrusted pack. A large pack is kept in a file, not in memory. Each object
// is identified by the hash of its content, and sizes and counts are limited.
package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Options specify how a pack is read.
type Options struct {
	Limits Limits
	// Dir is the directory for a pack that is too large for memory. The default is os.TempDir.
	Dir string
	// Filtered is set if the server left out files larger than Limits.FileBytes.
	Filtered bool
}

// Store returns the objects of a pack.
type Store struct {
	ReadOnly
	limits   Limits
	filtered bool
	// partial is set if objects are missing because they or their bases are too large.
	partial bool

	mu      sync.Mutex
	spool   *spool
	scanner *packfile.Scanner
	cache   *cache.BufferLRU
	left    int64
	objects []packed
	byHash  map[plumbing.Hash]int32
	// waiting holds, for each base hash that is not yet known, the first delta that refers to it.
	waiting map[plumbing.Hash]int32
}

var _ storer.EncodedObjectStorer = (*Store)(nil)

// Read reads a pack to its end and indexes its objects. Its errors match ErrMalformed, name the exceeded limit, or come
// from r. The caller must close the Store.
func Read(ctx context.Context, r io.Reader, o Options) (*Store, error) {
	spooled, err := newSpool(r, o.Dir)
	if err != nil {
		return nil, err
	}
	limits := o.Limits.OrDefault()
	s := &Store{
		limits: limits, filtered: o.Filtered, left: limits.InflatedBytes, spool: spooled,
		scanner: packfile.NewScanner(spooled.reader(ctx)),
		cache:   cache.NewBufferLRU(cache.FileSize(limits.ObjectBytes)),
		byHash:  map[plumbing.Hash]int32{}, waiting: map[plumbing.Hash]int32{},
	}
	err = s.scan(ctx)
	if err == nil {
		err = s.resolve(ctx)
	}
	if err != nil {
		s.Close()
		return nil, explain(ctx, err)
	}
	s.left = math.MaxInt64 // callers that read objects have their own limits
	return s, nil
}

// explain returns the error of ctx if it has ended, an ErrMalformed error if the pack ends early, or else err.
func explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("it is truncated")
	}
	return err
}

// Close frees the resources of the pack. Objects that were read remain valid.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spool.Close()
}

// Len returns the number of objects that can be read.
func (s *Store) Len() int { return len(s.byHash) }

// EncodedObject returns an object. The error matches ErrTooLarge if the object is too large, or may be missing for that
// reason, and plumbing.ErrObjectNotFound if it does not exist.
func (s *Store) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byHash[hash]
	if !ok {
		return nil, s.missing(kind)
	}
	object := s.objects[i]
	limit := s.limits.ObjectBytes
	if object.kind == plumbing.BlobObject {
		limit = min(limit, s.limits.FileBytes)
	}
	switch {
	case kind != plumbing.AnyObject && kind != object.kind:
		return nil, plumbing.ErrObjectNotFound
	case object.size > limit:
		return nil, tooLarge(limit)
	}
	content, err := s.content(i)
	if err != nil {
		return nil, err
	}
	read := &plumbing.MemoryObject{}
	read.SetType(object.kind)
	if _, err := read.Write(content); err != nil {
		return nil, err
	}
	if read.Hash() != hash {
		return nil, malformed("the content of the object %s does not match its hash", hash)
	}
	return read, nil
}

func (s *Store) missing(kind plumbing.ObjectType) error {
	mayBeBlob := kind == plumbing.BlobObject || kind == plumbing.AnyObject
	switch {
	case s.filtered && mayBeBlob:
		return tooLarge(s.limits.FileBytes)
	case s.partial && (mayBeBlob || kind == plumbing.TreeObject):
		return fmt.Errorf("%w, or is a delta of an object that is too large; raise limits.bytes",
			tooLarge(s.limits.ObjectBytes))
	}
	return plumbing.ErrObjectNotFound
}

// EncodedObjectSize returns the size of an object. For a missing object, it returns the same errors as EncodedObject.
func (s *Store) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byHash[hash]
	if !ok {
		return 0, s.missing(plumbing.AnyObject)
	}
	return s.objects[i].size, nil
}

// HasEncodedObject returns plumbing.ErrObjectNotFound if the pack lacks the object.
func (s *Store) HasEncodedObject(hash plumbing.Hash) error {
	if _, ok := s.byHash[hash]; !ok {
		return plumbing.ErrObjectNotFound
	}
	return nil
}
