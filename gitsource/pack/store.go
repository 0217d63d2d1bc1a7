// Package pack reads single objects out of a pack that nobody vouches for. The pack is kept in a
// file, never in memory as a whole; each object is known by the hash of what it holds; and sizes
// and numbers are bounded.
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

// Options say how a pack is read.
type Options struct {
	Limits Limits
	// Dir is where a pack that is too large for memory is kept while it is read; that for temporary
	// files if it is empty.
	Dir string
	// Filtered says that the server has left out files that are larger than Limits.FileBytes.
	Filtered bool
}

// Store gives the objects of a pack.
type Store struct {
	ReadOnly
	limits   Limits
	filtered bool
	// partial says that objects are missing because they, or what they are differences from, are
	// too large.
	partial bool

	mu      sync.Mutex
	spool   *spool
	scanner *packfile.Scanner
	cache   *cache.BufferLRU
	left    int64
	objects []packed
	byHash  map[plumbing.Hash]int32
	// waiting are the deltas whose base is named by its hash: the first of each.
	waiting map[plumbing.Hash]int32
}

var _ storer.EncodedObjectStorer = (*Store)(nil)

// Read reads a pack to its end and finds the objects in it. Its errors match ErrMalformed, or say
// which limit the pack goes past, or are those of r. Whoever reads a pack closes the Store.
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
	s.left = math.MaxInt64 // whoever reads objects has bounds of their own
	return s, nil
}

// explain tells a pack that ends early, or is no pack, from one that cannot be read.
func explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("it ends early")
	}
	return err
}

// Close gives back what the pack takes. Objects that were read stay.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spool.Close()
}

// Len is the number of objects that can be read.
func (s *Store) Len() int { return len(s.byHash) }

// EncodedObject returns an object. The error matches ErrTooLarge if it is there, or may be, and is
// too large, and plumbing.ErrObjectNotFound if it is not there.
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
		return nil, malformed("the object %s does not hash to its name", hash)
	}
	return read, nil
}

func (s *Store) missing(kind plumbing.ObjectType) error {
	mayBeBlob := kind == plumbing.BlobObject || kind == plumbing.AnyObject
	switch {
	case s.filtered && mayBeBlob:
		return tooLarge(s.limits.FileBytes)
	case s.partial && (mayBeBlob || kind == plumbing.TreeObject):
		return fmt.Errorf("%w, or kept as a difference from what is; raise --max-object-bytes",
			tooLarge(s.limits.ObjectBytes))
	}
	return plumbing.ErrObjectNotFound
}

// EncodedObjectSize returns the size of an object. Its errors are those of EncodedObject.
func (s *Store) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byHash[hash]
	if !ok {
		return 0, s.missing(plumbing.AnyObject)
	}
	return s.objects[i].size, nil
}

// HasEncodedObject returns plumbing.ErrObjectNotFound where the pack lacks the object.
func (s *Store) HasEncodedObject(hash plumbing.Hash) error {
	if _, ok := s.byHash[hash]; !ok {
		return plumbing.ErrObjectNotFound
	}
	return nil
}
