package disk

import (
	"context"
	"io"
	"os"
)

// Copy copies a file to an empty file and returns early if ctx is done. It preserves holes if the system reports them,
// because a file with holes may be far larger than the disk.
func Copy(ctx context.Context, to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	for at := int64(0); at < size; {
		start, end, err := nextData(from, at, size)
		if err != nil {
			return err
		}
		if _, err := to.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(to, Until(ctx, io.NewSectionReader(from, start, end-start))); err != nil {
			return err
		}
		at = end
	}
	return to.Truncate(size)
}
