package pack

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits limit the objects of a pack. Zero fields default to DefaultLimits.
type Limits struct {
	// Objects limits the number of objects. Each takes a few hundred bytes of memory.
	Objects int
	// InflatedBytes limits the size of all objects together. They are hashed but not stored.
	InflatedBytes int64
	// ObjectBytes limits the size of one object that is read or is the base of a delta. A few objects of that size are
	// held in memory at the same time.
	ObjectBytes int64
	// FileBytes limits the size of one file that is read.
	FileBytes int64
}

// DefaultLimits are far above the needs of a repository that declares clusters.
var DefaultLimits = Limits{Objects: 500_000, InflatedBytes: 2 << 30, ObjectBytes: 32 << 20, FileBytes: 2 << 20}

// OrDefault replaces zero fields with defaults.
func (l Limits) OrDefault() Limits {
	return Limits{
		Objects:       cmp.Or(l.Objects, DefaultLimits.Objects),
		InflatedBytes: cmp.Or(l.InflatedBytes, DefaultLimits.InflatedBytes),
		ObjectBytes:   cmp.Or(l.ObjectBytes, DefaultLimits.ObjectBytes),
		FileBytes:     cmp.Or(l.FileBytes, DefaultLimits.FileBytes),
	}
}

// ErrTooLarge is matched by errors about an object that is not read because of its size. Other objects can still be
// read.
var ErrTooLarge = errors.New("is too large")

func tooLarge(bytes int64) error { return fmt.Errorf("%w: larger than %s", ErrTooLarge, Size(bytes)) }

// ErrMalformed is matched by errors about a pack that git would not have written.
var ErrMalformed = errors.New("the pack is malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Size formats a number of bytes for display.
func Size(bytes int64) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes > 0 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
