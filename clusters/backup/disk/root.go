package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrIrregular is returned for anything other than a regular file, such as a link or a pipe. ErrLink is returned for a
// link in place of a file or directory.
var (
	ErrIrregular = errors.New("not a regular file")
	ErrLink      = errors.New("it is a symbolic link, which is not followed. Remove it, or replace it with its target")
)

// Enter opens a directory in dir, which others can write to. It returns ErrLink for a link, even if the link points
// into dir; os.Root would follow such a link.
func Enter(dir *os.Root, name string) (*os.Root, error) {
	return enter(name, filepath.Join(dir.Name(), name), dir.Lstat, dir.OpenRoot)
}

// EnterNew is like Enter, but first creates the directory if it does not exist.
func EnterNew(dir *os.Root, name string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return Enter(dir, name)
}

// OpenDir opens a directory unless it is a link. It trusts the directories above it.
func OpenDir(path string) (*os.Root, error) { return enter(path, path, os.Lstat, os.OpenRoot) }

func enter(
	name, path string, lstat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error),
) (*os.Root, error) {
	found, err := lstat(name)
	switch {
	case err != nil:
		return nil, err
	case found.Mode()&fs.ModeSymlink != 0:
		return nil, refuse(path, ErrLink)
	case !found.IsDir():
		return nil, refuse(path, errors.New("not a directory"))
	}
	dir, err := open(name + "/.") // the dot makes this fail if name is now a pipe; without it, opening would block
	if err != nil {
		return nil, err
	}
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(found, opened) {
		_ = dir.Close()
		return nil, refuse(path, errors.Join(errors.New("it was replaced while it was being opened"), err))
	}
	return dir, nil
}

func refuse(path string, why error) error { return &fs.PathError{Op: "open", Path: path, Err: why} }

// replacements is the maximum number of times that a file may be replaced while OpenIn tries to open it.
const replacements = 100

// OpenIn opens a file in dir for reading, like Open. It returns ErrIrregular unless the file is regular. Another
// process may replace the file at the same time.
func OpenIn(dir *os.Root, name string) (*os.File, error) {
	for range replacements {
		found, err := StatIn(dir, name)
		if err != nil {
			return nil, err
		}
		file, err := dir.OpenFile(name, os.O_RDONLY|notThrough, 0)
		if err != nil {
			return nil, err
		}
		opened, err := file.Stat()
		if err == nil && os.SameFile(found, opened) { // otherwise, os.Root may have followed a link into dir
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
	return nil, refuse(filepath.Join(dir.Name(), name), errors.New("it was replaced repeatedly while it was being "+
		"opened"))
}

// StatIn returns information about a file in dir. It returns ErrIrregular unless the file is regular.
func StatIn(dir *os.Root, name string) (fs.FileInfo, error) {
	found, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Name(), name)
	switch {
	case found.Mode()&fs.ModeSymlink != 0:
		return nil, refuse(path, fmt.Errorf("%w: %w", ErrIrregular, ErrLink))
	case !found.Mode().IsRegular():
		return nil, refuse(path, ErrIrregular)
	}
	return found, nil
}

// CreateIn creates a file in dir with a unique name that begins with prefix. It never opens an existing file.
func CreateIn(dir *os.Root, prefix string) (file *os.File, name string, err error) {
	name = prefix + rand.Text()
	file, err = dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return file, name, err
}

// SyncDir flushes a directory's entries to disk.
func SyncDir(dir *os.Root) error {
	file, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// unfinished is the prefix of the names of files that Write has not completed.
const unfinished = ".unfinished-"

// Write durably creates or replaces a file in a directory that others can write to. If the file's name is a link, Write
// replaces the link and does not follow it. Write returns ErrLink if the directory itself is a link.
func Write(path string, content []byte) error {
	dir, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer dir.Close()
	file, written, err := CreateIn(dir, unfinished)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = dir.Rename(written, filepath.Base(path))
	}
	if err != nil {
		_ = dir.Remove(written)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(dir)
}
