package manifests

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"quorate.dev/quorate/gitsource/manifests/renderer"
	"quorate.dev/quorate/internal/printable"
)

// originAnnotation is the annotation in which kustomize records the source file of an object.
const originAnnotation = "config.kubernetes.io/origin"

// origins finds the source files of rendered objects.
type origins struct {
	files *files
	// dir is the rendered directory. root is its kustomization, which is used as the origin if the origin is unknown.
	dir, root string
	parsed    map[string][]place
}

// toObject converts a rendered object and adds its position in the source.
func (o *origins) toObject(r renderer.Object) object {
	rendered := object{file: o.root}
	var err error
	if r.Problem != "" {
		err = errors.New(r.Problem)
	} else {
		err = json.Unmarshal(r.JSON, &rendered.value)
	}
	metadata, _ := rendered.value["metadata"].(map[string]any)
	if file := o.fileOf(r.Origin); file != "" {
		kind, _ := rendered.value["kind"].(string)
		name, _ := metadata["name"].(string)
		rendered.file, rendered.line = file, o.lineOf(file, kind, name)
	}
	if err != nil {
		rendered.problems = []Problem{{File: rendered.file, Line: rendered.line, Message: err.Error()}}
		return rendered
	}
	dropOrigin(metadata)
	return rendered
}

// fileOf returns the source file of an object, relative to the root of the source.
func (o *origins) fileOf(origin string) string {
	file := path.Join(o.dir, origin)
	if origin == "" || !fs.ValidPath(file) || !printable.IsPath(file) {
		return ""
	}
	return file
}

// place is the position of an object in a file.
type place struct {
	kind, name string
	line       int
}

// maxPlaces is the maximum number of objects in a file that lineOf searches.
const maxPlaces = 1000

// lineOf finds an object in its file by kind and name. Kustomize may have added a prefix or suffix to the name. It
// returns 0 if there is no match, or if the match is ambiguous.
func (o *origins) lineOf(file, kind, name string) int {
	places := o.placesIn(file)
	if len(places) > maxPlaces {
		return 0
	}
	line, length := 0, 0
	for _, p := range places {
		switch {
		case p.kind != kind || !strings.Contains(name, p.name):
		case len(p.name) > length:
			line, length = p.line, len(p.name)
		case len(p.name) == length:
			line = 0
		}
	}
	return line
}

func (o *origins) placesIn(file string) []place {
	if places, ok := o.parsed[file]; ok {
		return places
	}
	var places []place
	if content, err := o.files.read(file); err == nil {
		for document, err := range o.files.documentsIn(content) {
			if err != nil {
				break
			}
			if root := rootOf(document); root != nil {
				found := o.files.toObject(file, root)
				places = append(places, place{textAt(root, "kind"), textAt(root, "metadata", "name"),
					found.lineOf("metadata.name")})
			}
		}
	}
	o.parsed[file] = places
	return places
}

func dropOrigin(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, originAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
