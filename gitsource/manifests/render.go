package manifests

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

// repositoryRoot is the path at which kustomize sees the source.
const repositoryRoot = "/repository"

func isKustomizationName(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}

// render builds the kustomization in dir.
func (f *files) render(dir string) (declarations []*declaration, problems []Problem, err error) {
	view := &kustomizeFS{files: f, root: f.kustomizationIn(dir)}
	f.rendering(view.root)
	rendered, err := f.runKustomize(view, dir)
	var refusal renderer.Refusal
	switch {
	case f.exceeded != nil:
		return nil, nil, f.exceeded
	case len(view.problems) > 0:
		return nil, view.problems, nil
	case errors.As(err, &refusal):
		return nil, []Problem{{File: view.root, Message: readable(string(refusal))}}, nil
	case err != nil:
		return nil, nil, err
	}
	origins := &origins{files: f, dir: dir, root: view.root, parsed: map[string][]place{}}
	for i, r := range rendered {
		d, p := f.declare(origins.toObject(r))
		declarations, problems = append(declarations, d...), append(problems, p...)
		rendered[i] = renderer.Object{}
	}
	return declarations, problems, nil
}

// runKustomize renders the kustomization in dir in this process.
func (f *files) runKustomize(view *kustomizeFS, dir string) (rendered []renderer.Object, err error) {
	var size int64
	limits := renderer.Limits{ObjectBytes: f.limits.FileBytes, Kustomizations: f.limits.Kustomizations}
	err = renderer.Render(view, path.Join(repositoryRoot, dir), limits, func(o renderer.Object) error {
		if size += int64(len(o.JSON)); size > f.limits.TotalBytes {
			return f.exceed(settingBytes, "the kustomization renders to more than %s",
				mebibytes(f.limits.TotalBytes))
		}
		if len(rendered) >= f.limits.Objects {
			return f.exceed(settingObjects, "more than %d objects are declared", f.limits.Objects)
		}
		rendered = append(rendered, o)
		return nil
	})
	return rendered, err
}

// withOrigins returns a kustomization that also requests the origin of each object.
func withOrigins(kustomization []byte) ([]byte, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(kustomization, &fields); err != nil || len(fields) == 0 {
		return kustomization, err
	}
	metadata, _ := fields["buildMetadata"].([]any)
	fields["buildMetadata"] = append(metadata, kustomize.OriginAnnotations)
	return yaml.Marshal(fields)
}

func (f *files) kustomizationIn(dir string) string {
	view := &kustomizeFS{files: f}
	if names := view.kustomizationsIn(dir); len(names) > 0 {
		return path.Join(dir, names[0])
	}
	return dir
}

// attempts matches the text that kustomize adds to an error after first trying to read a directory as a file.
var attempts = regexp.MustCompile(
	`accumulating resources: accumulation err='accumulating resources from '[^']*': [^']*': `)

// readable makes the paths in a kustomize message relative to the source, and removes parts that are not the cause.
func readable(message string) string {
	message = attempts.ReplaceAllString(message, "")
	message = strings.NewReplacer(repositoryRoot+"/", "", repositoryRoot, ".").Replace(message)
	return strings.TrimSpace(message)
}
