//go:build !linux

package disk

import "errors"

// Lease returns errors.ErrUnsupported on this platform.
func (s *Shared) Lease() error { return errors.ErrUnsupported }

// Leased always returns false on this platform.
func (s *Shared) Leased() bool { return false }
