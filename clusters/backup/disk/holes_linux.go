package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// nextData says where the next data of a file of that size begin and end. Both are its size where there is
// nothing but a hole.
func nextData(file *os.File, from, size int64) (start, end int64, err error) {
	start, err = file.Seek(from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // this file system has no word for holes
		return from, size, nil
	case err != nil:
		return 0, 0, err
	}
	if end, err = file.Seek(start, unix.SEEK_HOLE); err != nil {
		return 0, 0, err
	}
	return min(start, size), min(end, size), nil
}
