package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
)

// directory stores backups in files. Unlike gocloud.dev's implementation, it returns only after they have been flushed
// to disk.
type directory struct{ root string }

// unfinished is the prefix of the names of files that are being written.
const unfinished = ".unfinished-"

// abandoned is the time after which an unchanged unfinished file counts as abandoned by a killed writer: uploads never
// pause for that long.
const abandoned = 7 * 24 * time.Hour

// Create implements Bucket. If several processes create the same file, on one machine or over one file server, only one
// succeeds, because creating a link is atomic.
func (d directory) Create(ctx context.Context, name string, content io.Reader) error {
	d.clear(name)
	return d.write(ctx, name, content, func(written, final string) error {
		if err := os.Link(written, final); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return ErrExists
	})
}

// clear removes unfinished files of killed writers from the directory of a file. They can be as large as a backup, and
// would eventually fill the disk. Failures are harmless.
func (d directory) clear(name string) {
	final, err := d.path(name)
	if err != nil {
		return
	}
	entries, _ := os.ReadDir(filepath.Dir(final))
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(filepath.Dir(final), entry.Name()))
		}
	}
}

// Replace implements Bucket.
func (d directory) Replace(ctx context.Context, name string, content io.Reader) error {
	return d.write(ctx, name, content, os.Rename)
}

func (d directory) write(
	ctx context.Context, name string, content io.Reader, place func(written, final string) error,
) (err error) {
	final, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o700); err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	file, err := os.CreateTemp(filepath.Dir(final), unfinished)
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = io.Copy(file, disk.Until(ctx, content))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = place(file.Name(), final)
	}
	if err == nil {
		err = d.sync(filepath.Dir(final))
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// sync flushes directory entries to disk, up to the root.
func (d directory) sync(dir string) error {
	for {
		if err := disk.Sync(dir); err != nil {
			return err
		}
		if dir == d.root || len(dir) < len(d.root) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// Open implements Bucket.
func (d directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file") // such as a pipe, which could block the reader
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, d.plain(err))
	}
	return file, nil
}

// Size implements Bucket.
func (d directory) Size(_ context.Context, name string) (int64, error) {
	path, err := d.path(name)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", name, d.plain(err))
	}
	return info.Size(), nil
}

// List implements Bucket. A missing directory is an error, not an empty list, because its disk may not be mounted.
func (d directory) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
		relative, away := filepath.Rel(d.root, path)
		name := filepath.ToSlash(relative)
		first, _, _ := strings.Cut(name, "/")
		switch {
		case ctx.Err() != nil || away != nil:
			return errors.Join(context.Cause(ctx), away)
		case name != "." && !IsName(first): // does not belong to the store, such as lost+found
			return skip(entry)
		case err != nil:
			return err
		case entry.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a symbolic link, which is not followed", path)
		case entry.IsDir():
			if name != "." && !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/") {
				return fs.SkipDir
			}
		case entry.Type().IsRegular() && strings.HasPrefix(name, prefix) &&
			!strings.HasPrefix(entry.Name(), unfinished):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.root, err)
	}
	slices.Sort(names)
	return names, nil
}

// skip skips a file or directory.
func skip(entry fs.DirEntry) error {
	if entry != nil && entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// Delete implements Bucket.
func (d directory) Delete(_ context.Context, name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("delete %s: %w", name, d.plain(err))
	}
	return nil
}

// Close implements Bucket.
func (d directory) Close() error { return nil }

// path returns the file for a name, which is inside the directory.
func (d directory) path(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." {
		return "", fmt.Errorf("%q is not a valid name in a store", name)
	}
	return filepath.Join(d.root, filepath.FromSlash(name)), nil
}

// plain maps file system errors to bucket errors.
func (d directory) plain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, gone := os.Stat(d.root); gone != nil {
			return fmt.Errorf("%w: %w", errGone, gone)
		}
		return ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return err
}
