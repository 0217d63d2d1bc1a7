package pack

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// ReadOnly implements the object-store methods that a read-only store does not need. Writes and iteration return
// errors.ErrUnsupported.
type ReadOnly struct{}

// NewEncodedObject creates an object in memory.
func (ReadOnly) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

// SetEncodedObject returns errors.ErrUnsupported.
func (ReadOnly) SetEncodedObject(plumbing.EncodedObject) (plumbing.Hash, error) {
	return plumbing.ZeroHash, errors.ErrUnsupported
}

// IterEncodedObjects returns errors.ErrUnsupported.
func (ReadOnly) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errors.ErrUnsupported
}

// AddAlternate returns errors.ErrUnsupported.
func (ReadOnly) AddAlternate(string) error { return errors.ErrUnsupported }
