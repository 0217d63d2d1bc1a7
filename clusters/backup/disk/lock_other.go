//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"os"
)

// tryLock locks nothing, and says so.
func tryLock(*os.File) error { return errors.ErrUnsupported }

// tryShare locks nothing, and says so.
func tryShare(*os.File) error { return errors.ErrUnsupported }
