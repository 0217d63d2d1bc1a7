// Package store defines where backups are stored, how they are named, and their metadata. A backup consists of data and
// a manifest. The manifest is written last: without it, the backup does not exist.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Bucket is a place for backups: a directory, or a bucket in an object store. The parts of names are separated by
// slashes. The content is untrusted, because others may be able to write to the bucket.
type Bucket interface {
	// Create stores content under a new name. It returns ErrExists if the name exists. The content is stored completely
	// or not at all.
	Create(ctx context.Context, name string, content io.Reader) error
	// Replace stores content under a name, replacing any existing content.
	Replace(ctx context.Context, name string, content io.Reader) error
	// Open returns the content stored under a name, or ErrNotFound.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Size returns the size of the content stored under a name, or ErrNotFound.
	Size(ctx context.Context, name string) (int64, error)
	// List returns all names with a prefix, in order. It returns an error rather than an incomplete list.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete deletes a name and its content. It returns ErrNotFound if the name does not exist, and ErrHeld if the
	// store does not allow the deletion.
	Delete(ctx context.Context, name string) error
	// Close releases the bucket's resources.
	Close() error
}

// LockedUntil returns a time until which every object created in the bucket after from is certain to be locked, or zero
// if the bucket does not lock objects.
func LockedUntil(b Bucket, from time.Time) time.Time {
	if locks, is := b.(interface{ lockedUntil(time.Time) time.Time }); is {
		return locks.lockedUntil(from)
	}
	return time.Time{}
}

// The errors that a Bucket returns.
var (
	ErrExists   = errors.New("an object with this name already exists")
	ErrNotFound = errors.New("an object with this name does not exist")
	ErrHeld     = errors.New("the store does not allow this request")
	// errGone does not match ErrNotFound, because if the bucket is missing, its content is unknown.
	errGone = errors.New("the bucket does not exist")
)
