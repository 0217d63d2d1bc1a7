package manifests

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"

	"quorate.dev/quorate/gitsource/visible"
)

// originAnnotation is where kustomize notes the file that an object comes from.
const originAnnotation = "config.kubernetes.io/origin"

// origins finds where rendered objects come from.
type origins struct {
	files *files
	// root is the kustomization at the root, for objects that do not tell.
	root   string
	parsed map[string][]object
}

// toObject makes an object of what kustomize rendered, with the place that it comes from.
func (o *origins) toObject(r *resource.Resource) object {
	rendered := object{file: o.root}
	if origin, err := r.GetOrigin(); err == nil && origin != nil {
		if file := fileOf(origin); file != "" {
			rendered.file = file
			rendered.line = o.lineOf(file, r.GetKind(), r.GetName())
		}
	}
	value, err := r.Map()
	if err == nil {
		rendered.value, err = normalize(value)
	}
	if err != nil {
		rendered.problems = []Problem{{File: rendered.file, Line: rendered.line, Message: err.Error()}}
		return rendered
	}
	dropOrigin(rendered.value)
	return rendered
}

// fileOf is the file that an object comes from, relative to the source.
func fileOf(origin *resource.Origin) string {
	from := origin.Path
	if from == "" {
		from = origin.ConfiguredIn
	}
	file, ok := strings.CutPrefix(path.Join(overlayRoot, from), repositoryRoot+"/")
	if !ok || from == "" || !visible.IsPath(file) {
		return ""
	}
	return file
}

// lineOf finds the object in its file by kind and name. Kustomize may have put something
// before or after the name. It is 0 if there is none, or none that is it for sure.
func (o *origins) lineOf(file, kind, name string) int {
	line, length := 0, 0
	for _, candidate := range o.objectsIn(file) {
		original := textAt(candidate.node, "metadata", "name")
		switch {
		case textAt(candidate.node, "kind") != kind || !strings.Contains(name, original):
		case len(original) > length:
			line, length = candidate.lineOf("metadata.name"), len(original)
		case len(original) == length:
			line = 0
		}
	}
	return line
}

func (o *origins) objectsIn(file string) []object {
	if objects, ok := o.parsed[file]; ok {
		return objects
	}
	content, err := o.files.read(file)
	if err == nil {
		o.parsed[file], _ = o.files.parse(file, content)
	}
	return o.parsed[file]
}

func dropOrigin(value map[string]any) {
	metadata, _ := value["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, originAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
