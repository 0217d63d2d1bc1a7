package pack

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// ReadOnly is what a store of objects that are only read, by their names, answers to all else.
type ReadOnly struct{}

// NewEncodedObject makes an object in memory.
func (ReadOnly) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }

// SetEncodedObject is refused.
func (ReadOnly) SetEncodedObject(plumbing.EncodedObject) (plumbing.Hash, error) {
	return plumbing.ZeroHash, errors.ErrUnsupported
}

// IterEncodedObjects is refused.
func (ReadOnly) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errors.ErrUnsupported
}

// AddAlternate is refused.
func (ReadOnly) AddAlternate(string) error { return errors.ErrUnsupported }
