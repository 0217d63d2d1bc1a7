// Package store keeps backups: where they are, how they are called, and what is said of each. A
// backup is data, and a manifest that is written last: what has no manifest does not exist.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Bucket is where backups are kept: a directory, or a bucket of an object store. Names have slashes
// between their parts. What it yields may have been written by anybody.
type Bucket interface {
	// Create stores what it reads under a name that must be free: ErrExists if not. It is stored as a
	// whole or not at all.
	Create(ctx context.Context, name string, content io.Reader) error
	// Replace stores what it reads, whatever was there.
	Replace(ctx context.Context, name string, content io.Reader) error
	// Open reads what is stored: ErrNotFound if there is nothing.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Size is that of what is stored: ErrNotFound if there is nothing.
	Size(ctx context.Context, name string) (int64, error)
	// List names all that is stored and begins so, in order. A list that is not whole is an error.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete removes what is stored: ErrNotFound if there is nothing, ErrHeld if it may not be.
	Delete(ctx context.Context, name string) error
	// Close ends its use.
	Close() error
}

// LockedUntil is until when what a bucket creates from a time on is locked at least: zero if nothing is.
func LockedUntil(b Bucket, from time.Time) time.Time {
	if locks, is := b.(interface{ lockedUntil(time.Time) time.Time }); is {
		return locks.lockedUntil(from)
	}
	return time.Time{}
}

// What a bucket answers.
var (
	ErrExists   = errors.New("there is one of that name already")
	ErrNotFound = errors.New("there is none of that name")
	ErrHeld     = errors.New("the store does not allow it")
	// errGone is no ErrNotFound: it says nothing of what was in it.
	errGone = errors.New("the bucket itself is not there")
)
