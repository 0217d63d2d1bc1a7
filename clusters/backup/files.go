package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"quorate.dev/quorate/clusters/backup/disk"
)

// unfinished is the name pattern of files that are still being written. They are in the same directory as the final
// file.
const unfinished = ".unfinished-*.db"

// ErrTooLarge is returned for a snapshot that exceeds the size limit.
var ErrTooLarge = errors.New("the snapshot is too large")

// copyUpTo copies from until its end. It returns ErrTooLarge if there are more than most bytes; 0 means no limit.
func copyUpTo(most int64, to io.Writer, from io.Reader) error {
	if most <= 0 {
		_, err := io.Copy(to, from)
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: more than %d bytes; to raise the limit, set --max-bytes", ErrTooLarge, most)
	}
	return err
}

// name durably gives a written file its final name, unless that name is in use.
func name(written, path string) error {
	if err := os.Link(written, path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// leave removes a file that is no longer needed. Failures are harmless.
func leave(path string) { _ = os.RemoveAll(path) }
