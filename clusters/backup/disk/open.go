package disk

import (
	"fmt"
	"io"
	"os"
)

// Open opens a file in a directory that others can write to. It returns an error unless the file is regular: a link
// could point anywhere, and a pipe could block its reader forever.
func Open(path string) (*os.File, error) { return openRegular(path, os.O_RDONLY, 0) }

// OpenToChange is like Open, but opens the file for reading and writing.
func OpenToChange(path string) (*os.File, error) { return openRegular(path, os.O_RDWR, 0) }

// Read opens a file like Open and returns its content. It returns an error if the file is longer than most bytes.
func Read(path string, most int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("read %s: the file has more than %d bytes", path, most)
	}
	return text, err
}

func openRegular(path string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flag|notThrough, mode)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse(path, ErrIrregular)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
