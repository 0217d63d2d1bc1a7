// Package deploy renders the manifests that run Quorate in a Kubernetes cluster. It uses the kustomizations in this
// directory, which users' overlays can use as well.
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

// The modes are a run every minute, a run that is divided among several pods, and a loop with two replicas.
const (
	CronJob    Mode = "cronjob"
	IndexedJob Mode = "indexed-job"
	Loop       Mode = "loop"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{CronJob, IndexedJob, Loop} }

const (
	// Namespace is the namespace in which Quorate runs.
	Namespace = "quorate-system"
	// Credentials is the directory in which the Secret quorate-git is mounted.
	Credentials = "/etc/quorate/git"
	// ConfigFile is the name of the configuration file in its ConfigMap.
	ConfigFile = "quorate.yaml"
	// Cluster is the source to use if the custom resources themselves are the declarations.
	Cluster = "cluster"
)

// Options specifies what to render.
type Options struct {
	Mode Mode
	// Image is the Quorate image.
	Image string
	// Config is the content of the configuration file for the runs. If it is empty, the runs use the example in
	// deploy/base.
	Config string
	// Args are additional arguments for "quorate run".
	Args []string
	// Private mounts the Secret quorate-git, which contains the credentials for the source, at Credentials.
	Private bool
	// NetworkPolicy restricts the traffic of Quorate's pods.
	NetworkPolicy bool
	// Shards is the number of pods in an Indexed Job. Zero keeps the number in deploy/indexed-job.
	Shards int
}

// Render returns each object as a YAML string, in the order in which the objects can be applied.
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
	if err == nil {
		err = all.WriteFile(path.Join(dir, ConfigFile), []byte(o.Config))
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

// load writes the embedded files and the CustomResourceDefinition to all, in the same layout as in the source tree.
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
		return fmt.Errorf("write the kustomizations: %w", err)
	}
	return nil
}

// kustomization returns the overlay that a user would write.
func (o Options) kustomization() (kustomize.Kustomization, error) {
	k := kustomize.Kustomization{
		Resources: []string{"../base"},
	}
	if o.Config != "" {
		k.ConfigMapGenerator = []kustomize.ConfigMapArgs{{GeneratorArgs: kustomize.GeneratorArgs{
			Name: "quorate-config", Namespace: Namespace, Behavior: "replace",
			KvPairSources: kustomize.KvPairSources{FileSources: []string{ConfigFile}},
		}}}
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

// operation is a JSON patch operation (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch returns the JSON patch for the workload. container is the path of the workload's container.
func (o Options) patch(container string) (string, error) {
	patch := []operation{{"replace", container + "/image", o.Image}}
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
