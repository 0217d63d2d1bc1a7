package pack

import (
	"cmp"
	"errors"
	"fmt"
)

// Limits on what a pack may be made of. One that is zero is that of DefaultLimits.
type Limits struct {
	// Objects in the pack. One takes some hundred bytes of memory.
	Objects int
	// InflatedBytes of all objects together. They are hashed, not kept.
	InflatedBytes int64
	// ObjectBytes of one object that is read, or that another is told as a difference from. A few
	// of that size are held in memory at once.
	ObjectBytes int64
	// FileBytes of one file that is read.
	FileBytes int64
}

// DefaultLimits are far over what a repository that declares clusters needs.
var DefaultLimits = Limits{Objects: 500_000, InflatedBytes: 2 << 30, ObjectBytes: 32 << 20, FileBytes: 2 << 20}

// OrDefault fills in what is zero.
func (l Limits) OrDefault() Limits {
	return Limits{
		Objects:       cmp.Or(l.Objects, DefaultLimits.Objects),
		InflatedBytes: cmp.Or(l.InflatedBytes, DefaultLimits.InflatedBytes),
		ObjectBytes:   cmp.Or(l.ObjectBytes, DefaultLimits.ObjectBytes),
		FileBytes:     cmp.Or(l.FileBytes, DefaultLimits.FileBytes),
	}
}

// ErrTooLarge is matched by errors about an object that is not read because of its size. Others can
// still be read.
var ErrTooLarge = errors.New("is too large")

func tooLarge(bytes int64) error { return fmt.Errorf("%w: larger than %s", ErrTooLarge, Size(bytes)) }

// ErrMalformed is matched by errors about a pack that git would not have made.
var ErrMalformed = errors.New("the pack is malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Size writes a number of bytes as people do.
func Size(bytes int64) string {
	switch {
	case bytes > 0 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes > 0 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
