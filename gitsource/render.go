package gitsource

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Where kustomize sees things: the source, and beside it a kustomization of ours that has
// the one at the root of the path for its only resource and asks for the origin of each
// object.
const (
	repositoryRoot = "/repository"
	overlayRoot    = "/overlay"
)

// originAnnotation is where kustomize notes the file that an object comes from.
const originAnnotation = "config.kubernetes.io/origin"

// kustomizing holds off a second rendering: kustomize keeps state in package variables.
var kustomizing sync.Mutex

func isKustomizationName(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}

// render builds the kustomization in dir.
func (f *files) render(dir string) ([]object, []Problem) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	view := &kustomizeFS{files: f, overlay: overlayOf(dir)}
	rendered, err := runKustomize(view)
	if len(view.problems) > 0 {
		return nil, view.problems
	}
	if err != nil {
		return nil, []Problem{{File: f.kustomizationIn(dir), Message: withoutRoots(err.Error())}}
	}
	var objects []object
	var problems []Problem
	for _, r := range rendered.Resources() {
		o, err := f.toRendered(r, dir)
		if err != nil {
			problems = append(problems, Problem{File: o.file, Line: o.line, Message: err.Error()})
			continue
		}
		objects = append(objects, o)
	}
	return objects, problems
}

// runKustomize survives a panic in kustomize. What could end the process, a cycle of
// aliases, kustomizeFS does not let through.
func runKustomize(view filesys.FileSystem) (rendered resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder:          krusty.ReorderOptionNone,
		LoadRestrictions: kustomize.LoadRestrictionsNone,
		PluginConfig:     kustomize.DisabledPluginConfig(),
	}).Run(view, overlayRoot)
}

func overlayOf(dir string) []byte {
	overlay, err := yaml.Marshal(map[string]any{
		"resources":     []string{path.Join("..", repositoryRoot, dir)},
		"buildMetadata": []string{kustomize.OriginAnnotations},
	})
	if err != nil {
		panic(err) // lists of strings marshal
	}
	return overlay
}

func (f *files) kustomizationIn(dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, err := f.read(path.Join(dir, name)); err == nil {
			return path.Join(dir, name)
		}
	}
	return dir
}

// withoutRoots makes the paths in kustomize's messages relative to the source.
func withoutRoots(message string) string {
	return strings.NewReplacer(repositoryRoot+"/", "", repositoryRoot, ".").Replace(message)
}

// toRendered makes an object of what kustomize rendered, with the place that it comes from.
func (f *files) toRendered(r *resource.Resource, dir string) (object, error) {
	o := object{file: f.kustomizationIn(dir)}
	if origin, err := r.GetOrigin(); err == nil && origin != nil {
		if file := fileOf(origin); file != "" {
			o.file = file
			o.line = f.lineOfObject(file, r.GetKind(), r.GetName())
		}
	}
	value, err := r.Map()
	if err != nil {
		return o, err
	}
	if o.value, err = normalize(value); err != nil {
		return o, err
	}
	dropOrigin(o.value)
	return o, nil
}

// fileOf is the file that an object comes from, relative to the source.
func fileOf(origin *resource.Origin) string {
	from := origin.Path
	if from == "" {
		from = origin.ConfiguredIn
	}
	file, ok := strings.CutPrefix(path.Join(overlayRoot, from), repositoryRoot+"/")
	if !ok || from == "" || !isPrintable(file) {
		return ""
	}
	return file
}

// lineOfObject finds the object in its file by kind and name, or by its kind alone if it is
// the only one: kustomize may have renamed it. It is 0 if there is none.
func (f *files) lineOfObject(file, kind, name string) int {
	content, err := f.read(file)
	if err != nil {
		return 0
	}
	objects, _ := parse(file, content)
	var alike []int
	for _, o := range objects {
		if o.value["kind"] != kind {
			continue
		}
		line := o.lineOf("metadata.name")
		if metadata, ok := o.value["metadata"].(map[string]any); ok && metadata["name"] == name {
			return line
		}
		alike = append(alike, line)
	}
	if len(alike) == 1 {
		return alike[0]
	}
	return 0
}

func dropOrigin(value map[string]any) {
	metadata, _ := value["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, originAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
