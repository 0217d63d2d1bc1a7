//go:build !linux

package disk

import "errors"

// Lease is not to be had on this system.
func (s *Shared) Lease() error { return errors.ErrUnsupported }

// Leased is never true on this system.
func (s *Shared) Leased() bool { return false }
