package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nextData returns the start and end of the next data at or after from, in a file of the given size. Both equal size if
// only a hole remains.
func nextData(file *os.File, from, size int64) (start, end int64, err error) {
	start, err = file.Seek(from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // this file system does not report holes
		return from, size, nil
	case err != nil:
		return 0, 0, err
	}
	if end, err = file.Seek(start, unix.SEEK_HOLE); err != nil {
		return 0, 0, err
	}
	return min(start, size), min(end, size), nil
}
