//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Exchange does nothing, and says so.
func Exchange(a, b string) error {
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: errors.ErrUnsupported}
}
