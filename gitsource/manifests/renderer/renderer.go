// Package renderer runs kustomize on the given files. It does not limit memory, time or stack: untrusted files must be
// rendered in a child process (confined).
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

// Files provides the files that kustomize sees. Each name is requested at most once.
type Files interface {
	// Look returns the file or directory at an absolute path. An error ends the rendering.
	Look(name string) (Entry, error)
}

// Entry is a file, a directory, or neither.
type Entry struct {
	IsFile, IsDir bool
	// Content is the content of the file.
	Content []byte
	// Kustomizations lists the files in the directory that kustomize recognizes as kustomizations.
	Kustomizations []string
}

// Limits are the limits of one rendering.
type Limits struct {
	// ObjectBytes limits one object, as JSON.
	ObjectBytes int64
	// Kustomizations limits the number of kustomizations that are read. A kustomization counts each time it is used.
	Kustomizations int
}

// Object is one rendered object.
type Object struct {
	// JSON is the object as JSON, or nil if it cannot be converted.
	JSON json.RawMessage
	// Origin is the path of the object's source file, relative to the rendered directory. It is empty if unknown.
	Origin string
	// Problem is the reason why JSON is nil.
	Problem string
}

// Refusal is the reason why a kustomization was not rendered: it is invalid or exceeds a limit. Retrying does not help.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Render renders the kustomization in the directory dir, and calls each for every object. The error is a Refusal, or an
// error returned by files or each.
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
			return Refusal(fmt.Sprintf("a rendered object is larger than %d bytes; "+
				"to allow more, raise limits.bytes", limits.ObjectBytes))
		}
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// given is an error from Quorate that passes through kustomize.
type given struct{ error }

// Kustomize renders the kustomization in dir. It recovers from panics, but a stack overflow ends the process.
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
