package manifests

import (
	"cmp"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

// kustomizeFS presents the files of a source to kustomize, below repositoryRoot. Kustomize reads only through Look, so
// hostile files are rejected there.
type kustomizeFS struct {
	files *files
	// root is the kustomization that is being rendered.
	root string
	// problems lists the problems with the requested files. If it is not empty, rendering fails.
	problems []Problem
}

var _ renderer.Files = (*kustomizeFS)(nil)

// Look returns content that is safe for kustomize. An error ends the rendering.
func (k *kustomizeFS) Look(name string) (renderer.Entry, error) {
	if err := cmp.Or(k.files.ctx.Err(), k.files.exceeded); err != nil {
		return renderer.Entry{}, err
	}
	inner, inSource := k.inner(name)
	switch {
	case inSource && k.isDir(inner):
		return renderer.Entry{IsDir: true, Kustomizations: k.kustomizationsIn(inner)}, nil
	case inSource && k.isFile(inner):
		return renderer.Entry{IsFile: true, Content: k.read(inner)}, nil
	default:
		return renderer.Entry{}, nil
	}
}

// read returns the content of a file. For a file that kustomize must not read, it returns content that lets kustomize
// continue, so that the problems with all files are found: either no content, or the kustomization reduced to its
// readable resources.
func (k *kustomizeFS) read(inner string) []byte {
	content, problems := k.readChecked(inner)
	if len(problems) == 0 && inner == k.root {
		var err error
		if content, err = withOrigins(content); err != nil {
			problems = []Problem{{File: inner, Message: err.Error()}}
		}
	}
	if len(problems) == 0 {
		return content
	}
	k.problems = append(k.problems, problems...)
	if !isKustomizationName(path.Base(inner)) {
		return nil
	}
	return k.restOf(path.Dir(inner), content)
}

func (k *kustomizeFS) readChecked(inner string) ([]byte, []Problem) {
	content, err := k.files.read(inner)
	if err != nil {
		return nil, []Problem{{File: inner, Message: err.Error()}}
	}
	return content, k.check(inner, content)
}

func (k *kustomizeFS) kustomizationsIn(dir string) (names []string) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if k.isFile(path.Join(dir, name)) {
			names = append(names, name)
		}
	}
	return names
}

// inner returns the name in the source for a name used by kustomize.
func (k *kustomizeFS) inner(name string) (inner string, ok bool) {
	if name == repositoryRoot {
		return ".", true
	}
	return strings.CutPrefix(name, repositoryRoot+"/")
}

func (k *kustomizeFS) isDir(inner string) bool { return k.files.checkDirectory(inner) == nil }

func (k *kustomizeFS) isFile(inner string) bool {
	if k.files.checkDirectory(path.Dir(inner)) != nil {
		return false
	}
	kind, err := k.files.kind(inner)
	return err == nil && kind.IsRegular()
}

func (k *kustomizeFS) exists(inner string) bool {
	return fs.ValidPath(inner) && (k.isDir(inner) || k.isFile(inner))
}
