package manifests

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

// Where kustomize sees things: the source, and beside it a kustomization of ours that has
// the one at the root of the path for its only resource and asks for the origin of each
// object.
const (
	repositoryRoot = "/repository"
	overlayRoot    = "/overlay"
	overlayFile    = overlayRoot + "/kustomization.yaml"
)

// rendering holds off a second rendering, so that their memory does not add up.
var rendering = make(chan struct{}, 1)

func isKustomizationName(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}

// render builds the kustomization in dir.
func (f *files) render(dir string) (objects []object, problems []Problem, err error) {
	select {
	case rendering <- struct{}{}:
		defer func() { <-rendering }()
	case <-f.ctx.Done():
		return nil, nil, f.ctx.Err()
	}
	view := &kustomizeFS{files: f, overlay: overlayOf(dir), left: f.limits.Kustomizations}
	rendered, err := f.runKustomize(view)
	var refusal renderer.Refusal
	switch {
	case f.exceeded != nil:
		return nil, nil, f.exceeded
	case len(view.problems) > 0:
		return nil, view.problems, nil
	case errors.As(err, &refusal):
		return nil, []Problem{{File: f.kustomizationIn(dir), Message: readable(string(refusal))}}, nil
	case err != nil:
		return nil, nil, err
	}
	origins := &origins{files: f, root: f.kustomizationIn(dir), parsed: map[string][]object{}}
	for _, r := range rendered {
		objects = append(objects, origins.toObject(r))
	}
	return objects, nil, nil
}

// runKustomize renders in a process of its own.
func (f *files) runKustomize(view *kustomizeFS) (rendered []renderer.Object, err error) {
	var size int64
	limits := renderer.Limits{Memory: f.limits.RenderMemory, CPU: f.limits.RenderCPU, ObjectBytes: f.limits.FileBytes}
	err = renderer.Render(f.ctx, view, overlayRoot, limits, func(o renderer.Object) error {
		if size += int64(len(o.JSON)); size > f.limits.TotalBytes {
			return f.exceed("max-total-bytes", "the kustomization renders to more than %s", mebibytes(f.limits.TotalBytes))
		}
		if len(rendered) >= f.limits.Objects {
			return f.exceed("max-objects", "more than %d objects are declared", f.limits.Objects)
		}
		rendered = append(rendered, o)
		return nil
	})
	return rendered, err
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

// attempts is what kustomize says of taking a directory for a file first.
var attempts = regexp.MustCompile(`accumulating resources: accumulation err='accumulating resources from '[^']*': [^']*': `)

// readable makes the paths in a message of kustomize's relative to the source, and leaves out
// what is not the cause.
func readable(message string) string {
	message = attempts.ReplaceAllString(message, "")
	message = strings.NewReplacer(".."+repositoryRoot+"/", "", repositoryRoot+"/", "", repositoryRoot, ".").Replace(message)
	return strings.TrimSpace(message)
}
