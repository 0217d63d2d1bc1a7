// Package deploy renders what runs Quorate in a Kubernetes cluster, from the kustomizations of this directory: the
// same ones that overlays refer to.
package deploy

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

//go:embed base loop indexed-job network-policy private
var files embed.FS

// Mode is how Quorate runs.
type Mode string

// The modes: a run every minute, one that is divided among pods, and two loops.
const (
	CronJob    Mode = "cronjob"
	IndexedJob Mode = "indexed-job"
	Loop       Mode = "loop"
)

// Modes are all of them.
func Modes() []Mode { return []Mode{CronJob, IndexedJob, Loop} }

const (
	// Namespace is where Quorate runs.
	Namespace = "quorate-system"
	// Cluster is the source of a run that takes the custom resources themselves for the declaration.
	Cluster = "cluster"
)

// Options say what is to run.
type Options struct {
	Mode Mode
	// Image is that of Quorate, as containers name it.
	Image string
	// Source, Branch and Path say where the clusters are declared. Without a branch, it is the one that HEAD names.
	Source, Branch, Path string
	// Args are more arguments of "quorate run".
	Args []string
	// Private mounts the Secret quorate-git, with the credentials of the source.
	Private bool
	// NetworkPolicy bounds what Quorate's pods reach.
	NetworkPolicy bool
	// Shards are how many pods an Indexed Job has; as many as deploy/indexed-job says if they are not given.
	Shards int
}

// Render returns the objects in the order in which they can be applied, as YAML, one string each.
func Render(o Options) ([]string, error) {
	all := filesys.MakeFsInMemory()
	if err := load(all); err != nil {
		return nil, err
	}
	const dir = "/deploy/overlay"
	overlay, err := o.kustomization()
	if err == nil {
		err = write(all, dir, overlay)
	}
	if err != nil {
		return nil, fmt.Errorf("write the kustomization: %w", err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(all, dir)
	if err != nil {
		return nil, fmt.Errorf("render the mode %s: %w", o.Mode, err)
	}
	var objects []string
	for _, r := range rendered.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("render %s %s: %w", r.GetKind(), r.GetName(), err)
		}
		objects = append(objects, string(text))
	}
	return objects, nil
}

func write(all filesys.FileSystem, dir string, k kustomize.Kustomization) error {
	text, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	return all.WriteFile(path.Join(dir, "kustomization.yaml"), text)
}

// load lays out the files as the source tree has them.
func load(all filesys.FileSystem) error {
	const definition = "/clusters/v1alpha1/crd"
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return all.WriteFile(path.Join("/deploy", name), text)
	})
	if err == nil {
		err = all.WriteFile(path.Join(definition, "crd.yaml"), crd.YAML)
	}
	if err == nil {
		err = all.WriteFile(path.Join(definition, "kustomization.yaml"), []byte("resources: [crd.yaml]\n"))
	}
	if err != nil {
		return fmt.Errorf("lay out the kustomizations: %w", err)
	}
	return nil
}

// literal is a value as it is: kustomize takes one pair of quotes away.
func literal(key, value string) string { return key + "='" + value + "'" }

// kustomization is the overlay that a person would write.
func (o Options) kustomization() (kustomize.Kustomization, error) {
	k := kustomize.Kustomization{
		Resources: []string{"../base"},
		ConfigMapGenerator: []kustomize.ConfigMapArgs{{GeneratorArgs: kustomize.GeneratorArgs{
			Name: "quorate-source", Namespace: Namespace, Behavior: "merge",
			KvPairSources: kustomize.KvPairSources{
				LiteralSources: []string{
					literal("SOURCE", o.Source), literal("BRANCH", o.Branch), literal("DIRECTORY", o.Path),
				},
			},
		}}},
	}
	on, pod := "CronJob", "/spec/jobTemplate/spec/template/spec"
	switch o.Mode {
	case Loop:
		k.Resources = []string{"../loop"}
		on, pod = "Deployment", "/spec/template/spec"
	case IndexedJob:
		k.Components = append(k.Components, "../indexed-job")
	case CronJob:
	}
	if o.Private {
		k.Components = append(k.Components, "../private")
	}
	if o.NetworkPolicy {
		k.Components = append(k.Components, "../network-policy")
	}
	patch, err := o.patch(pod + "/containers/0")
	if err != nil {
		return k, err
	}
	k.Patches = []kustomize.Patch{{
		Target: &kustomize.Selector{ResId: resid.NewResIdKindOnly(on, "quorate")}, Patch: patch,
	}}
	return k, nil
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch is the JSON patch of what runs Quorate, whose container is at that path.
func (o Options) patch(container string) (string, error) {
	patch := []operation{{"replace", container + "/image", o.Image}}
	if o.Source == Cluster { // what says how to read git would be refused
		path, branch := container+"/args/3", container+"/args/2"
		patch = append(patch,
			operation{"test", path, "--path=$(DIRECTORY)"}, operation{"remove", path, nil},
			operation{"test", branch, "--branch=$(BRANCH)"}, operation{"remove", branch, nil})
	}
	for _, arg := range o.Args {
		patch = append(patch, operation{"add", container + "/args/-", arg})
	}
	if o.Mode == IndexedJob && o.Shards > 0 {
		patch = append(patch,
			operation{"replace", "/spec/jobTemplate/spec/completions", o.Shards},
			operation{"replace", "/spec/jobTemplate/spec/parallelism", o.Shards},
			operation{"replace", container + "/env/0/value", strconv.Itoa(o.Shards)})
	}
	text, err := json.Marshal(patch)
	return string(text), err
}
