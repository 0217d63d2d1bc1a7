package objects

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Template tells apart what pods are made from. A pod reads the file of its own template for as
// long as it lives, so that nothing that git declares meanwhile changes how its member restarts.
type Template struct{ Version, SpecHash string }

// DeclaredTemplate is the template of the pods that git asks for.
func DeclaredTemplate(c *v1alpha1.EtcdCluster) Template {
	return Template{c.Spec.Version, SpecHash(c)}
}

// IsDeclared reports whether pods of the template are what git asks for, as far as the template itself tells: it may
// have been made of the declaration as that is spelled.
func (t Template) IsDeclared(c *v1alpha1.EtcdCluster) bool {
	return t.Version == c.Spec.Version && (t.SpecHash == SpecHash(c) || t.SpecHash == spelledHash(c))
}

// declared is the template of the pods that git asks for.
func (in Input) declared() Template {
	if in.Declared != (Template{}) {
		return in.Declared
	}
	return DeclaredTemplate(in.Cluster)
}

// String returns the part of the name of a member's file that is the template's.
func (t Template) String() string { return t.Version + "-" + t.SpecHash }

// isKey reports whether the template can be part of the key of a ConfigMap: anybody may have edited
// the annotations of a pod.
func (t Template) isKey() bool {
	return t.Version != "" && t.SpecHash != "" && len(validation.IsConfigMapKey(t.String())) == 0
}

// ConfigKey is the key, in the data of the ConfigMap, of the configuration file that the pod of
// that name and template reads.
func ConfigKey(pod string, t Template) string { return pod + "-" + t.String() + ".yaml" }

// templates are those that members have files for: the one that new pods are made from, and those
// of pods that are there.
func templates(in Input) []Template {
	inUse := append([]Template{in.Runs}, in.Pods...)
	if in.Kept == nil {
		inUse = append(inUse, in.declared())
	}
	set := map[Template]bool{}
	for _, t := range inUse {
		if t.isKey() {
			set[t] = true
		}
	}
	return slices.Collect(maps.Keys(set))
}

// templateOptions returns what the files of one template have in common. Those of the declared one
// follow from the declaration. What another one was made from is no longer declared: its files
// tell. It is nil if nothing does; only where new pods are made from that template the declaration
// has to do, as far as that version of etcd understands it.
func templateOptions(in Input, t Template) (map[string]any, error) {
	if t == in.declared() {
		return declaredOptions(in)
	}
	if live := liveOptions(in, t); live != nil {
		return live, nil
	}
	if t != in.Runs {
		return nil, nil
	}
	in.Cluster = in.Cluster.DeepCopy()
	in.Cluster.Spec.Version = t.Version
	options, _ := etcdOptions(in.Cluster.Spec)
	return commonKeys(in, options), nil
}

// liveOptions returns what the live files of one template have in common; nil if there is none.
func liveOptions(in Input, t Template) map[string]any {
	for ordinal := range MaxOrdinal + 1 {
		file := readFile(in.Live[ConfigKey(PodName(in.Cluster.Name, ordinal), t)])
		if file["data-dir"] == nil {
			continue // none is there, or it is none of ours
		}
		for _, key := range ownKeys {
			delete(file, key)
		}
		return file
	}
	return nil
}

// RunningQuota returns the quota of the database, in bytes, in the live file that the pod of that name and template reads;
// zero if nothing tells it.
func RunningQuota(live map[string]string, pod string, t Template) int64 {
	number, _ := readFile(live[ConfigKey(pod, t)])["quota-backend-bytes"].(json.Number)
	quota, err := number.Int64()
	if err != nil || quota < 0 {
		return 0
	}
	return quota
}

// readFile returns the keys of a configuration file; none if it cannot be read.
func readFile(text string) map[string]any {
	var keys map[string]any
	if checkText(text) != nil || yaml.Unmarshal([]byte(text), &keys, exactly) != nil {
		return nil
	}
	return keys
}

// exactly keeps numbers as they are written.
func exactly(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}
