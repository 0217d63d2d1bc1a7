// Package cache stores the git objects of the last read, so that unchanged repositories are not fetched again. It is
// never authoritative: the server always names the commit, and every object is checked against its hash.
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
	// maxBytes is the maximum size of all entries together.
	maxBytes = 1 << 30
	// MaxEntryBytes is the maximum size of one entry. The limits on reading one source are lower.
	MaxEntryBytes = 256 << 20
	// maxEntries is the maximum number of entries, one per source. The least recently used entries are removed first.
	maxEntries = 1000
	// abandoned is the age at which an unfinished file counts as abandoned by its writer.
	abandoned = time.Hour

	suffix = ".objects"
)

// Directory holds an entry for each source. Any number of processes may use it at the same time.
type Directory struct{ path string }

// Open opens a directory, creating it if necessary. It returns an error if the directory cannot be used, for example
// because other users could change its content.
func Open(path string) (Directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Directory{}, fmt.Errorf("open the cache: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return Directory{}, fmt.Errorf("open the cache: %w", err)
	}
	if problem := changeable(info); problem != "" {
		return Directory{}, fmt.Errorf("open the cache: %s %s; use a new directory inside it, "+
			"such as %s", path, problem, filepath.Join(path, "quorate"))
	}
	return Directory{path}, nil
}

// entry returns the file for key, which names a source and the selected revision and path.
func (d Directory) entry(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.path, hex.EncodeToString(sum[:16])+suffix)
}

// Load returns the objects of an entry after checking each against its hash. It returns no objects if the entry is
// missing, invalid, or could have been changed by another user. The objects are then fetched again, and the entry is
// replaced.
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

// readFile reads a file that only this user can write. It does not follow links and does not wait for the other end of
// a pipe.
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

var errTampered = errors.New("it is too large, is not a regular file, or can be changed by other users")

// Store replaces an entry atomically, and removes old entries.
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
		return fmt.Errorf("remove old objects from the cache: %w", err)
	}
	return nil
}

// replace moves a file to the path old, even if old is an empty directory.
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

// Touch marks an entry as used by rewriting its first byte. The process that reads the cache is not allowed to set file
// times, because that permission would cover all files of the user.
func (d Directory) Touch(key string) {
	file, err := os.OpenFile(d.entry(key), os.O_RDWR|inPlace, 0)
	if err != nil {
		return // at worst, the entry is removed earlier
	}
	defer file.Close()
	first := make([]byte, 1)
	if _, err := file.ReadAt(first, 0); err == nil {
		_, _ = file.WriteAt(first, 0)
	}
}

// removeOld removes abandoned files, and the least recently used entries if the limits are exceeded.
func (d Directory) removeOld() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), suffix) {
			continue // another process has removed the file, or it does not belong to the cache
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
