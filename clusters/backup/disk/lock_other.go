//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"os"
)

// tryLock returns errors.ErrUnsupported on this platform.
func tryLock(*os.File) error { return errors.ErrUnsupported }

// tryShare returns errors.ErrUnsupported on this platform.
func tryShare(*os.File) error { return errors.ErrUnsupported }
