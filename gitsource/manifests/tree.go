package manifests

import (
	"errors"
	"io"
	"io/fs"
)

// tree is the files of one revision.
type tree interface {
	// list returns the entries of a directory, by name.
	list(dir string) ([]entry, error)
	// kind is the type of what name names, which no symbolic link leads to. The error matches fs.ErrNotExist if there is nothing.
	kind(name string) (fs.FileMode, error)
	// read returns the content of a file.
	read(name string) ([]byte, error)
}

// entry is what a directory holds.
type entry struct {
	Name string
	Type fs.FileMode
}

// fsTree is the one of a file system, with at most so many bytes of a file.
type fsTree struct {
	fs    fs.FS
	bytes int64
}

func (t fsTree) list(dir string) ([]entry, error) {
	listed, err := fs.ReadDir(t.fs, dir)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(listed))
	for i, e := range listed {
		entries[i] = entry{e.Name(), e.Type()}
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
	tooLarge := errors.New(over("max-file-bytes", "is larger than %s", mebibytes(t.bytes)))
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

// Question is about one name in a source: what a directory lists, what kind of file a name is, or what is in a file.
type Question struct {
	List, Kind, Read string `json:",omitempty"`
}

// Answer is the answer to a Question, as one process gives it to another.
type Answer struct {
	Entries []entry     `json:",omitempty"`
	Kind    fs.FileMode `json:",omitempty"`
	Content []byte      `json:",omitempty"`
	Error   string      `json:",omitempty"`
	// Missing says that there is nothing of that name.
	Missing bool `json:",omitempty"`
}

// Answers answers questions about a file system, within the limits on a file.
func Answers(fsys fs.FS, l Limits) func(Question) Answer {
	t := fsTree{fsys, l.orDefault().FileBytes}
	return func(q Question) (a Answer) {
		var err error
		switch {
		case q.List != "":
			a.Entries, err = t.list(q.List)
		case q.Kind != "":
			a.Kind, err = t.kind(q.Kind)
		default:
			a.Content, err = t.read(q.Read)
		}
		if err != nil {
			return Answer{Error: err.Error(), Missing: errors.Is(err, fs.ErrNotExist)}
		}
		return a
	}
}
