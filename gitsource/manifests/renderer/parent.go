package renderer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// parent is the process that the child renders for, and the file system that kustomize sees: a read-only one, whose files the parent has.
type parent struct {
	out     io.Writer
	answers chan Entry
	known   map[string]Entry
	limits  Limits
	// kustomizations that have been read.
	kustomizations int
}

var _ filesys.FileSystem = (*parent)(nil)

// newParent reads answers at once as they come, so that the child ends with the parent, whatever it is busy with.
func newParent(in *json.Decoder, out io.Writer, limits Limits) *parent {
	p := &parent{out: out, answers: make(chan Entry), known: map[string]Entry{}, limits: limits}
	go func() {
		for {
			var e Entry
			if err := in.Decode(&e); err != nil {
				os.Exit(1) //nolint:forbidigo // nobody is left to render for
			}
			p.answers <- e
		}
	}()
	return p
}

func (p *parent) tell(m message) {
	if err := send(p.out, m); err != nil {
		os.Exit(1) //nolint:forbidigo // nobody is left to render for
	}
}

// look asks the parent what a name is, unless it is known: the parent has said so, or has said what kustomizations its directory has.
func (p *parent) look(name string) Entry {
	if e, ok := p.known[name]; ok {
		return e
	}
	dir, ok := p.known[path.Dir(name)]
	if ok && isKustomization(name) && !slices.Contains(dir.Kustomizations, path.Base(name)) {
		return Entry{}
	}
	p.tell(message{Look: name})
	p.known[name] = <-p.answers
	return p.known[name]
}

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// ReadFile returns the content of a file.
func (p *parent) ReadFile(name string) ([]byte, error) {
	name = clean(name)
	e := p.look(name)
	if !e.IsFile {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if isKustomization(name) {
		p.countKustomization()
	}
	return e.Content, nil
}

func (p *parent) countKustomization() {
	if p.kustomizations++; p.kustomizations > p.limits.Kustomizations {
		p.tell(message{Refusal: fmt.Sprintf("more than %d kustomizations are built on one another; --max-kustomizations raises the limit", p.limits.Kustomizations)})
		os.Exit(0) //nolint:forbidigo // kustomize would go on
	}
}

// IsDir says whether name is a directory.
func (p *parent) IsDir(name string) bool { return p.look(clean(name)).IsDir }

// Exists says whether name is a file or a directory.
func (p *parent) Exists(name string) bool {
	e := p.look(clean(name))
	return e.IsDir || e.IsFile
}

// CleanedAbs splits name into a directory and a file in it.
func (p *parent) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = clean(name)
	switch e := p.look(name); {
	case e.IsDir:
		return filesys.ConfirmedDir(name), "", nil
	case e.IsFile:
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
