package manifests

import (
	"cmp"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

// kustomizeFS shows kustomize the files of a source below repositoryRoot. All that kustomize reads
// it has from Look, so that is where hostile files are stopped.
type kustomizeFS struct {
	files *files
	// root is the kustomization that is rendered.
	root string
	// problems of the files that were asked for. Rendering fails if there are any.
	problems []Problem
}

var _ renderer.Files = (*kustomizeFS)(nil)

// Look returns what is safe to work with. The error says that nothing more is read.
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

// read returns the content of a file. Of one that kustomize must not have it is what lets kustomize
// go on, so that the problems of all files are found: nothing, or the kustomization without all
// that it asks for but what may be read.
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

// inner is the name in the source of what kustomize calls name.
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
