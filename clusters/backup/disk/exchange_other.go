//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Exchange returns errors.ErrUnsupported on this platform.
func Exchange(a, b string) error {
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: errors.ErrUnsupported}
}
