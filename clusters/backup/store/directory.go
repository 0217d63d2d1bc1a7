package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
)

// directory stores backups in files. Unlike gocloud.dev's implementation, it returns only after they have been flushed
// to disk.
//
// Others may be able to write below the root, for example on a volume that namespaces share. Links below the root are
// therefore never followed, not even links into the root, and only regular files are opened. Anything else that exists
// under a name is treated as follows:
//   - If a directory is a link, its content is unknown. Every request for a name below it fails, and so does a list
//     that would include it. Lists of other clusters succeed.
//   - Anything other than a regular file exists, but cannot be opened (disk.ErrIrregular). A backup with such a
//     manifest is listed as damaged, so that uploads use the next free slot, restores report what they skip, and
//     retention does not count it. Retention does not delete anything because of it: neither other backups, nor a
//     backup with such a manifest or damage mark. See listIrregular for the other files.
//   - Create returns ErrExists, Replace replaces a link, and Delete deletes a link. None of them changes the target.
//   - Names that cannot belong to a backup are ignored.
//
// Others must not be able to replace the root itself.
type directory struct{ root string }

// unfinished is the prefix of the names of files that are still being written.
const unfinished = ".unfinished-"

// abandoned is the time after which an unchanged unfinished file counts as abandoned by a killed process. Uploads never
// pause for that long.
const abandoned = 7 * 24 * time.Hour

// Create implements Bucket. If several processes create the same file, whether on one machine or through a file server,
// only one of them succeeds, because creating a link is atomic.
func (d directory) Create(ctx context.Context, name string, content io.Reader) error {
	return d.write(ctx, name, content, func(dir *os.Root, written, final string) error {
		if err := dir.Link(written, final); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return ErrExists
	})
}

// clearUnfinished removes unfinished files of killed processes from a directory. They can be as large as a backup and
// would eventually fill the disk. Failures are harmless.
func clearUnfinished(dir *os.Root) {
	entries, _ := fs.ReadDir(dir.FS(), ".")
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		if info, err := disk.StatIn(dir, entry.Name()); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = dir.Remove(entry.Name())
		}
	}
}

// Replace implements Bucket.
func (d directory) Replace(ctx context.Context, name string, content io.Reader) error {
	return d.write(ctx, name, content, (*os.Root).Rename)
}

func (d directory) write(
	ctx context.Context, name string, content io.Reader, place func(dir *os.Root, written, final string) error,
) (err error) {
	dir, final, err := d.enter(name, true)
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	defer dir.Close()
	clearUnfinished(dir)
	file, written, err := disk.CreateIn(dir, unfinished)
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	defer func() { _ = dir.Remove(written) }()
	_, err = io.Copy(file, disk.Until(ctx, content))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = place(dir, written, final)
	}
	if err == nil {
		err = d.sync(name)
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// enter opens the directory that contains name and returns the last part of name. The directory is inside the root. If
// create is set, enter creates missing directories below the root. For an invalid name, it returns an error that
// matches fs.ErrNotExist.
func (d directory) enter(name string, create bool) (dir *os.Root, last string, err error) {
	if !fs.ValidPath(name) || name == "." {
		return nil, "", fmt.Errorf("%q is not a valid name in a store: %w", name, fs.ErrNotExist)
	}
	if dir, err = os.OpenRoot(d.root); err != nil {
		return nil, "", err
	}
	enter := disk.Enter
	if create {
		enter = disk.EnterNew
	}
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		below, err := enter(dir, part)
		_ = dir.Close()
		if err != nil {
			return nil, "", err
		}
		dir = below
	}
	return dir, parts[len(parts)-1], nil
}

// sync flushes all directories of a name to disk, up to the root.
func (d directory) sync(name string) error {
	for name != "." {
		dir, _, err := d.enter(name, false)
		if err != nil {
			return err
		}
		if err := errors.Join(disk.SyncDir(dir), dir.Close()); err != nil {
			return err
		}
		name = path.Dir(name)
	}
	return nil
}

// Open implements Bucket.
func (d directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	dir, last, err := d.enter(name, false)
	var file *os.File
	if err == nil {
		defer dir.Close()
		file, err = disk.OpenIn(dir, last)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, d.plain(err))
	}
	return file, nil
}

// Size implements Bucket.
func (d directory) Size(_ context.Context, name string) (int64, error) {
	dir, last, err := d.enter(name, false)
	var info fs.FileInfo
	if err == nil {
		defer dir.Close()
		info, err = disk.StatIn(dir, last)
	}
	if err != nil {
		return 0, fmt.Errorf("inspect %s: %w", name, d.plain(err))
	}
	return info.Size(), nil
}

// List implements Bucket. A missing directory is an error, not an empty list, because its disk may not be mounted. List
// may omit names that cannot belong to a backup.
func (d directory) List(ctx context.Context, prefix string) ([]string, error) {
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.root, err)
	}
	defer root.Close()
	names, err := list(ctx, root, "", prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.root, err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// list returns the names with a prefix in a directory of the store. at is the name of the directory with a final slash,
// or empty for the root.
func list(ctx context.Context, dir *os.Root, at, prefix string) (names []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := at + entry.Name()
		below := strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/")
		link := entry.Type()&fs.ModeSymlink != 0
		switch {
		case (entry.IsDir() || link) && isDirectoryName(name): // a link may lead to backups
			if !below {
				continue
			}
			inside, err := listIn(ctx, dir, entry.Name(), name+"/", prefix)
			if err != nil {
				return nil, err
			}
			names = append(names, inside...)
		case !strings.HasPrefix(name, prefix), strings.HasPrefix(entry.Name(), unfinished):
		case entry.Type().IsRegular():
			names = append(names, name)
		default:
			names = append(names, listIrregular(name)...)
		}
	}
	return names, nil
}

// listIn is like list, but for a directory inside dir.
func listIn(ctx context.Context, dir *os.Root, entry, at, prefix string) ([]string, error) {
	inside, err := disk.Enter(dir, entry)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	return list(ctx, inside, at, prefix)
}

// Delete implements Bucket.
func (d directory) Delete(_ context.Context, name string) error {
	dir, last, err := d.enter(name, false)
	if err == nil {
		defer dir.Close()
		clearUnfinished(dir)
		err = dir.Remove(last)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, d.plain(err))
	}
	return nil
}

// Close implements Bucket.
func (d directory) Close() error { return nil }

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
