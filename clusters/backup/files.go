package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quorate.dev/quorate/clusters/backup/disk"
)

// unfinished is the pattern of files that are being written, beside where they are to be.
const unfinished = ".unfinished-*.db"

// ErrTooLarge is a snapshot larger than was asked for.
var ErrTooLarge = errors.New("it is larger than it may be")

// copyUpTo copies no more than so many bytes; 0 stands for any number.
func copyUpTo(most int64, to io.Writer, from io.Reader) error {
	if most <= 0 {
		_, err := io.Copy(to, from)
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: more than %d bytes; --max-bytes raises that", ErrTooLarge, most)
	}
	return err
}

// name gives a file that was written the name it is to have, for good, if nothing has it.
func name(written, path string) error {
	if err := os.Link(written, path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// leave removes what is of no use any more. If it cannot, it is in the way of nobody.
func leave(path string) { _ = os.RemoveAll(path) }
