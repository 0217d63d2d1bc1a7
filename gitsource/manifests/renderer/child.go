package renderer

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// childName is what the child is called instead of the name of the program.
const childName = "quorate-render"

// Whatever program this package is part of, tests included, is its own child: nobody who renders can forget to make it one, and none starts
// itself anew and anew.
func init() {
	if len(os.Args) == 1 && os.Args[0] == childName {
		os.Exit(runChild(os.Stdin, os.Stdout)) //nolint:forbidigo // the child is this function, and nothing is deferred before it
	}
}

// runChild does one task and returns the exit code.
func runChild(in io.Reader, out io.Writer) int {
	defer runtime.KeepAlive(os.Stderr) // it stays open for the runtime's last words
	os.Stdout, os.Stderr = nil, nil    // kustomize writes what it thinks of old fields
	log.SetOutput(io.Discard)
	answers := json.NewDecoder(in)
	var t task
	if err := answers.Decode(&t); err != nil {
		return 1
	}
	if err := confine(t.Limits); err != nil {
		_ = send(out, message{Refusal: fmt.Sprintf("the process that renders could not be confined: %v", err)})
		return 1
	}
	parent := newParent(answers, out, t.Limits)
	if err := parent.render(t.Dir); err != nil {
		parent.tell(message{Refusal: err.Error()})
		return 0
	}
	parent.tell(message{})
	return 0
}

// render tells the parent all objects.
func (p *parent) render(dir string) error {
	rendered, err := Kustomize(p, dir)
	if err != nil {
		return err
	}
	for _, r := range rendered.Resources() {
		p.tell(message{Object: objectOf(r)})
	}
	return nil
}

// Kustomize renders in this process, where neither memory nor time has a bound. It survives a panic, and no stack overflow.
func Kustomize(files filesys.FileSystem, dir string) (rendered resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder:          krusty.ReorderOptionNone,
		LoadRestrictions: kustomize.LoadRestrictionsNone,
		PluginConfig:     kustomize.DisabledPluginConfig(),
	}).Run(files, dir)
}

func objectOf(r *resource.Resource) *Object {
	o := &Object{}
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
