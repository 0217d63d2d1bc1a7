package renderer

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// parent is the process that the child renders for, and the file system that kustomize sees: a read-only one, whose files the parent has.
type parent struct {
	out     io.Writer
	replies chan reply
}

var _ filesys.FileSystem = (*parent)(nil)

// newParent reads replies at once as they come, so that the child ends with the parent, whatever it is busy with.
func newParent(replies *json.Decoder, out io.Writer) *parent {
	p := &parent{out: out, replies: make(chan reply)}
	go func() {
		for {
			var r reply
			if err := replies.Decode(&r); err != nil {
				os.Exit(1) //nolint:forbidigo // nobody is left to render for
			}
			p.replies <- r
		}
	}()
	return p
}

func (p *parent) tell(m message) {
	if err := send(p.out, m); err != nil {
		os.Exit(1) //nolint:forbidigo // nobody is left to render for
	}
}

func (p *parent) ask(m message) reply {
	p.tell(m)
	return <-p.replies
}

// ReadFile returns the content of a file.
func (p *parent) ReadFile(name string) ([]byte, error) {
	r := p.ask(message{Read: clean(name)})
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Content, nil
}

// IsDir says whether name is a directory.
func (p *parent) IsDir(name string) bool { return p.ask(message{Look: clean(name)}).IsDir }

// Exists says whether name is a file or a directory.
func (p *parent) Exists(name string) bool {
	r := p.ask(message{Look: clean(name)})
	return r.IsDir || r.IsFile
}

// CleanedAbs splits name into a directory and a file in it.
func (p *parent) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = clean(name)
	switch r := p.ask(message{Look: name}); {
	case r.IsDir:
		return filesys.ConfirmedDir(name), "", nil
	case r.IsFile:
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	default:
		return "", "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
}

func clean(name string) string { return path.Clean("/" + filepath.ToSlash(name)) }

var errReadOnly = errors.New("the source is read-only")

// ReadDir, Glob, Walk and Open are asked for by commands of kustomize, not by a rendering.
func (p *parent) ReadDir(string) ([]string, error)     { return nil, errors.ErrUnsupported }
func (p *parent) Glob(string) ([]string, error)        { return nil, errors.ErrUnsupported }
func (p *parent) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
func (p *parent) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (p *parent) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (p *parent) Mkdir(string) error                   { return errReadOnly }
func (p *parent) MkdirAll(string) error                { return errReadOnly }
func (p *parent) RemoveAll(string) error               { return errReadOnly }
func (p *parent) WriteFile(string, []byte) error       { return errReadOnly }
