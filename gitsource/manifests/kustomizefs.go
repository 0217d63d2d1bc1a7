package manifests

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

// kustomizeFS shows kustomize the files of a source below repositoryRoot. All that kustomize reads comes through ReadFile, so that is where
// hostile files are stopped.
type kustomizeFS struct {
	files   *files
	overlay []byte
	// left is how many more kustomizations may be read.
	left int
	// problems of the files that were asked for. Rendering fails if there are any.
	problems []Problem
}

var _ renderer.Files = (*kustomizeFS)(nil)

// ReadFile returns the content of a file that is safe to work with.
func (k *kustomizeFS) ReadFile(name string) ([]byte, error) {
	if path.Clean(name) == overlayFile {
		return k.overlay, nil
	}
	inner, err := k.inner(name)
	if err != nil {
		return nil, err
	}
	if !k.IsFile(name) {
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
	name = path.Clean("/" + name)
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

// IsFile says whether name is a file.
func (k *kustomizeFS) IsFile(name string) bool {
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

func (k *kustomizeFS) exists(name string) bool { return k.IsDir(name) || k.IsFile(name) }
