package renderer

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// view is the read-only file system that kustomize sees.
type view struct {
	files  Files
	known  map[string]Entry
	limits Limits
	// kustomizations counts the kustomizations that have been read.
	kustomizations int
}

var _ filesys.FileSystem = (*view)(nil)

// look requests a name, unless the answer is already known: the name was requested before, or the kustomizations in its
// directory are known.
func (v *view) look(name string) Entry {
	if e, ok := v.known[name]; ok {
		return e
	}
	dir, ok := v.known[path.Dir(name)]
	if ok && isKustomization(name) && !slices.Contains(dir.Kustomizations, path.Base(name)) {
		return Entry{}
	}
	e, err := v.files.Look(name)
	if err != nil {
		panic(given{err}) // kustomize would continue after an error
	}
	v.known[name] = e
	return e
}

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// ReadFile returns the content of a file.
func (v *view) ReadFile(name string) ([]byte, error) {
	name = clean(name)
	e := v.look(name)
	if !e.IsFile {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if isKustomization(name) {
		v.countKustomization()
	}
	return e.Content, nil
}

func (v *view) countKustomization() {
	if v.kustomizations++; v.kustomizations > v.limits.Kustomizations {
		panic(given{Refusal(fmt.Sprintf("more than %d kustomizations are nested; "+
			"to allow more, raise limits.objects", v.limits.Kustomizations))})
	}
}

// IsDir reports whether name is a directory.
func (v *view) IsDir(name string) bool { return v.look(clean(name)).IsDir }

// Exists reports whether name is a file or a directory.
func (v *view) Exists(name string) bool {
	e := v.look(clean(name))
	return e.IsDir || e.IsFile
}

// CleanedAbs splits name into a directory and a file in it.
func (v *view) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = clean(name)
	switch e := v.look(name); {
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

// ReadDir, Glob, Walk and Open are used by kustomize commands, but not for rendering.
func (v *view) ReadDir(string) ([]string, error)     { return nil, errors.ErrUnsupported }
func (v *view) Glob(string) ([]string, error)        { return nil, errors.ErrUnsupported }
func (v *view) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
func (v *view) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (v *view) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (v *view) Mkdir(string) error                   { return errReadOnly }
func (v *view) MkdirAll(string) error                { return errReadOnly }
func (v *view) RemoveAll(string) error               { return errReadOnly }
func (v *view) WriteFile(string, []byte) error       { return errReadOnly }
