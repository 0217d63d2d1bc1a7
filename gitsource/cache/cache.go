// Package cache keeps the git objects of what was read last, so that they need not cross the
// network again. It is no source of its own: whoever reads from it has learnt from the server which
// commit to read, and what does not hash to its name is an error.
package cache

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// maxBytes of all entries.
	maxBytes = 1 << 30
	// MaxEntryBytes of one entry: what is read of one source is bounded to less.
	MaxEntryBytes = 256 << 20
	// maxEntries are of as many sources. Those that were not used for the longest time go first.
	maxEntries = 1000
	// abandoned is how old a file is that some process has begun to write and never ended.
	abandoned = time.Hour

	suffix = ".objects"
)

// Directory holds an entry for each source. Any number of processes may use it at once.
type Directory struct{ path string }

// Open opens a directory, or makes it. The error says why it cannot be used: others than this user
// could change what is in it, for example.
func Open(path string) (Directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Directory{}, fmt.Errorf("open the cache: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Directory{}, fmt.Errorf("open the cache: %w", err)
	}
	if problem := changeable(info); problem != "" {
		return Directory{}, fmt.Errorf("open the cache: %s %s; name a directory in it that is not there yet, "+
			"such as %s", path, problem, filepath.Join(path, "quorate"))
	}
	return Directory{path}, nil
}

// entry is the file of what key names: a source and what is read of it.
func (d Directory) entry(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16])+suffix)
}

// Load returns the objects of an entry, each checked against its name. There are none if there is
// no such entry, or if it is not as this user has written it: the server is asked again then, and
// the entry replaced.
func (d Directory) Load(key string) *Objects {
	content, err := readFile(d.entry(key))
	if err != nil {
		return newObjects()
	}
	objects, err := decode(bytes.NewReader(content))
	if err != nil {
		return newObjects()
	}
	return objects
}

// readFile reads a file of this user, and neither follows links nor waits for the other end of a
// pipe.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|inPlace, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxEntryBytes || changeable(info) != "" {
		return nil, errTampered
	}
	return io.ReadAll(io.LimitReader(file, MaxEntryBytes))
}

var errTampered = errors.New("it is not as this user has written it")

// Store replaces an entry, in one step, and removes what is old.
func (d Directory) Store(key string, objects *Objects) error {
	file, err := os.CreateTemp(d.path, ".*"+suffix)
	if err != nil {
		return fmt.Errorf("write the cache: %w", err)
	}
	if err = write(file, objects); err == nil {
		err = replace(file.Name(), d.entry(key))
	}
	if err != nil {
		return fmt.Errorf("write the cache: %w", errors.Join(err, os.Remove(file.Name())))
	}
	if err := d.removeOld(); err != nil {
		return fmt.Errorf("remove what is old from the cache: %w", err)
	}
	return nil
}

// replace puts a file in the place of what is there, which may be an empty directory too.
func replace(name, old string) error {
	if info, err := os.Lstat(old); err == nil && info.IsDir() {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return os.Rename(name, old)
}

func write(file *os.File, objects *Objects) error {
	w := bufio.NewWriter(file)
	err := objects.encode(w)
	return cmp.Or(err, w.Flush(), file.Sync(), file.Close())
}

// Touch notes that an entry was used: its first byte is written again. Whoever reads the cache may
// not set the times of files, as that takes a right to all files of the user.
func (d Directory) Touch(key string) {
	file, err := os.OpenFile(d.entry(key), os.O_RDWR|inPlace, 0)
	if err != nil {
		return // the entry is removed earlier, no more
	}
	defer file.Close()
	first := make([]byte, 1)
	if _, err := file.ReadAt(first, 0); err == nil {
		_, _ = file.WriteAt(first, 0)
	}
}

// removeOld keeps the entries that were used last, as many as there is room for.
func (d Directory) removeOld() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), suffix) {
			continue // another process has removed it, or it is not the cache's
		}
		files = append(files, info)
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	bytes, kept := int64(0), 0
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			if time.Since(f.ModTime()) < abandoned {
				continue
			}
		} else if bytes, kept = bytes+f.Size(), kept+1; kept == 1 || kept <= maxEntries && bytes <= maxBytes {
			continue
		}
		if err := os.Remove(filepath.Join(d.path, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
