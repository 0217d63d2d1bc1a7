package disk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Exchange atomically swaps the names of two directories.
func Exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		err = fmt.Errorf("%w (if the file system cannot exchange two names, "+
			"copy the data directory to a different file system)", err)
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}
