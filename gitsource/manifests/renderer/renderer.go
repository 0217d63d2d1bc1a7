// Package renderer runs kustomize on files that it is shown. Neither memory nor time nor its stack
// has a bound here: whoever renders what strangers write does it in a process of its own
// (confined).
package renderer

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Files is what kustomize sees. Each name is asked for once at most.
type Files interface {
	// Look returns what an absolute path names. An error ends the rendering.
	Look(name string) (Entry, error)
}

// Entry is a file, a directory, or neither.
type Entry struct {
	IsFile, IsDir bool
	// Content of the file.
	Content []byte
	// Kustomizations are the names in the directory by which kustomize knows a kustomization.
	Kustomizations []string
}

// Limits of one rendering.
type Limits struct {
	// ObjectBytes bounds one object, as JSON.
	ObjectBytes int64
	// Kustomizations that are built on one another, each as often as it is built on.
	Kustomizations int
}

// Object is one rendered object.
type Object struct {
	// JSON of the object; nil if it has none.
	JSON json.RawMessage
	// Origin is the path of the file that the object comes from, relative to the rendered
	// directory; empty if that is unknown.
	Origin string
	// Problem says why it has no JSON.
	Problem string
}

// Refusal is an error that says why a kustomization was not rendered: it is wrong, or asks for too
// much. It would be refused again.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Render renders the kustomization in the directory dir, and calls each for every object. The error
// is a Refusal, that of files, or that of each.
func Render(files Files, dir string, limits Limits, each func(Object) error) error {
	rendered, err := Kustomize(&view{files: files, known: map[string]Entry{}, limits: limits}, dir)
	var stopped given
	switch {
	case errors.As(err, &stopped):
		return stopped.error
	case err != nil:
		return Refusal(err.Error())
	}
	for _, r := range rendered.Resources() {
		o := objectOf(r)
		if int64(len(o.JSON)) > limits.ObjectBytes {
			return Refusal(fmt.Sprintf("an object that it renders is larger than %d bytes; "+
				"--max-file-bytes raises the limit", limits.ObjectBytes))
		}
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// given is an error of ours that kustomize is left with.
type given struct{ error }

// Kustomize renders. It survives a panic, and no stack overflow.
func Kustomize(files filesys.FileSystem, dir string) (rendered resmap.ResMap, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case given:
			err = r
		default:
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder:          krusty.ReorderOptionNone,
		LoadRestrictions: kustomize.LoadRestrictionsNone,
		PluginConfig:     kustomize.DisabledPluginConfig(),
	}).Run(files, dir)
}

func objectOf(r *resource.Resource) (o Object) {
	if origin, err := r.GetOrigin(); err == nil && origin != nil {
		if o.Origin = origin.Path; o.Origin == "" {
			o.Origin = origin.ConfiguredIn
		}
	}
	value, err := r.Map()
	if err == nil {
		o.JSON, err = json.Marshal(value)
	}
	if err != nil {
		o.Problem = err.Error()
	}
	return o
}
