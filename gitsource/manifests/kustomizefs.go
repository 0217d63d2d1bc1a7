package manifests

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomizeFS shows kustomize the files of a source, read-only, below repositoryRoot. All
// that kustomize reads comes through ReadFile, so that is where hostile files are stopped.
type kustomizeFS struct {
	files   *files
	overlay []byte
	// left is how many more kustomizations may be read.
	left int
	// problems of the files that were asked for. Rendering fails if there are any.
	problems []Problem
}

var _ filesys.FileSystem = (*kustomizeFS)(nil)

var errReadOnly = errors.New("the source is read-only")

// ReadFile returns the content of a file that is safe to work with.
func (k *kustomizeFS) ReadFile(name string) ([]byte, error) {
	if path.Clean(name) == overlayFile {
		return k.overlay, nil
	}
	inner, err := k.inner(name)
	if err != nil {
		return nil, err
	}
	if !k.isFile(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	content, err := k.files.read(inner)
	if err != nil {
		k.problems = append(k.problems, Problem{File: inner, Message: err.Error()})
		return nil, err
	}
	if problems := k.check(inner, content); len(problems) > 0 {
		k.problems = append(k.problems, problems...)
		return nil, errors.New(problems[0].String())
	}
	return content, nil
}

// inner is the name in the source.
func (k *kustomizeFS) inner(name string) (string, error) {
	name = path.Clean("/" + filepath.ToSlash(name))
	if name == repositoryRoot {
		return ".", nil
	}
	if rest, ok := strings.CutPrefix(name, repositoryRoot+"/"); ok {
		return rest, nil
	}
	return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// IsDir says whether name is a directory.
func (k *kustomizeFS) IsDir(name string) bool {
	if clean := path.Clean("/" + name); clean == overlayRoot || clean == "/" {
		return true
	}
	inner, err := k.inner(name)
	return err == nil && k.files.checkDirectory(inner) == nil
}

// Exists says whether name is a file or a directory.
func (k *kustomizeFS) Exists(name string) bool {
	return k.IsDir(name) || k.isFile(name)
}

func (k *kustomizeFS) isFile(name string) bool {
	if path.Clean(name) == overlayFile {
		return true
	}
	inner, err := k.inner(name)
	if err != nil || k.files.checkDirectory(path.Dir(inner)) != nil {
		return false
	}
	info, err := fs.Lstat(k.files.fs, inner)
	return err == nil && info.Mode().IsRegular()
}

// CleanedAbs splits name into a directory and a file in it.
func (k *kustomizeFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	name = path.Clean("/" + name)
	if k.IsDir(name) {
		return filesys.ConfirmedDir(name), "", nil
	}
	if k.isFile(name) {
		return filesys.ConfirmedDir(path.Dir(name)), path.Base(name), nil
	}
	return "", "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir returns the names in a directory.
func (k *kustomizeFS) ReadDir(name string) ([]string, error) {
	inner, err := k.inner(name)
	if err != nil {
		return nil, err
	}
	entries, err := k.files.list(inner)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Glob, Walk and Open are asked for by commands of kustomize, not by a rendering.
func (k *kustomizeFS) Glob(string) ([]string, error)        { return nil, errors.ErrUnsupported }
func (k *kustomizeFS) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
func (k *kustomizeFS) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (k *kustomizeFS) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (k *kustomizeFS) Mkdir(string) error                   { return errReadOnly }
func (k *kustomizeFS) MkdirAll(string) error                { return errReadOnly }
func (k *kustomizeFS) RemoveAll(string) error               { return errReadOnly }
func (k *kustomizeFS) WriteFile(string, []byte) error       { return errReadOnly }
