package manifests

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// tree is the file tree of one revision.
type tree interface {
	// list returns the entries of a directory, sorted by name.
	list(dir string) ([]entry, error)
	// kind returns the type of the file called name. The parents in its path must not be symbolic links. The error
	// matches fs.ErrNotExist if the file does not exist.
	kind(name string) (fs.FileMode, error)
	// read returns the content of a file.
	read(name string) ([]byte, error)
}

// entry is an entry of a directory.
type entry struct {
	Name string
	Type fs.FileMode
	// Unsupported is set if the entry cannot be read because of its name. In that case, Name is quoted and may be
	// truncated.
	Unsupported bool `json:",omitempty"`
}

// maxNameBytes is the maximum size of a name. File systems do not support longer names.
const maxNameBytes = 4 << 10

func entryNamed(name string, kind fs.FileMode) entry {
	if printable.IsFileName(name) && len(name) <= maxNameBytes {
		return entry{Name: name, Type: kind}
	}
	if len(name) > maxNameBytes {
		name = name[:100] + "…" + name[len(name)-100:]
	}
	return entry{Name: strconv.Quote(name), Type: kind, Unsupported: true}
}

// matters reports whether an entry with an unsupported name would be read, or may have been meant to be read.
func (e entry) matters() bool {
	return !e.Type.IsRegular() ||
		slices.ContainsFunc(extensions, func(extension string) bool { return strings.Contains(e.Name, extension) })
}

// fsTree is the tree of a file system. It returns an error for files that are larger than the given number of bytes.
type fsTree struct {
	fs    fs.FS
	bytes int64
}

func (t fsTree) list(dir string) ([]entry, error) {
	listed, err := fs.ReadDir(t.fs, dir)
	if err != nil {
		return nil, err
	}
	entries := make(entries, len(listed))
	for i, e := range listed {
		entries[i] = entryNamed(e.Name(), e.Type())
	}
	if bound := ListBytes(t.bytes); entries.bytes() > bound {
		return nil, errors.New(over(settingBytes, "is a directory whose listing is larger than %s",
			mebibytes(bound)))
	}
	return entries, nil
}

func (t fsTree) kind(name string) (fs.FileMode, error) {
	info, err := fs.Lstat(t.fs, name)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

func (t fsTree) read(name string) ([]byte, error) {
	tooLarge := errors.New(over(settingBytes, "is larger than %s", mebibytes(t.bytes)))
	if info, err := fs.Stat(t.fs, name); err == nil && info.Size() > t.bytes {
		return nil, tooLarge
	}
	file, err := t.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, t.bytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > t.bytes {
		return nil, tooLarge
	}
	return content, nil
}
