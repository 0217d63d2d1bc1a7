package manifests

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Where kustomize sees things: the source, and beside it a kustomization of ours that has
// the one at the root of the path for its only resource and asks for the origin of each
// object.
const (
	repositoryRoot = "/repository"
	overlayRoot    = "/overlay"
	overlayFile    = overlayRoot + "/kustomization.yaml"
)

// kustomizing holds off a second rendering: kustomize keeps state in package variables.
var kustomizing sync.Mutex

func isKustomizationName(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), name)
}

// render builds the kustomization in dir.
func (f *files) render(dir string) ([]object, []Problem) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	view := &kustomizeFS{files: f, overlay: overlayOf(dir), left: f.limits.Kustomizations}
	rendered, err := runKustomize(view)
	if len(view.problems) > 0 {
		return nil, view.problems
	}
	if err != nil {
		return nil, []Problem{{File: f.kustomizationIn(dir), Message: readable(err.Error())}}
	}
	origins := &origins{files: f, root: f.kustomizationIn(dir), parsed: map[string][]object{}}
	var objects []object
	for _, r := range rendered.Resources() {
		objects = append(objects, origins.toObject(r))
	}
	return objects, nil
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

// attempts is what kustomize says of taking a directory for a file first.
var attempts = regexp.MustCompile(`accumulating resources: accumulation err='accumulating resources from '[^']*': [^']*': `)

// readable makes the paths in a message of kustomize's relative to the source, and leaves out
// what is not the cause.
func readable(message string) string {
	message = attempts.ReplaceAllString(message, "")
	message = strings.NewReplacer(".."+repositoryRoot+"/", "", repositoryRoot+"/", "", repositoryRoot, ".").Replace(message)
	return strings.TrimSpace(message)
}
