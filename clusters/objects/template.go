package objects

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Template identifies a pod template. A pod always reads the file of its own template, so later changes in git do not
// affect how its member restarts.
type Template struct{ Version, SpecHash string }

// DeclaredTemplate returns the declared pod template.
func DeclaredTemplate(c *v1alpha1.EtcdCluster) Template {
	return Template{c.Spec.Version, SpecHash(c)}
}

// IsDeclared reports whether the template matches the spec. The template's hash may also be a hash of the declaration
// without normalization.
func (t Template) IsDeclared(c *v1alpha1.EtcdCluster) bool {
	return t.Version == c.Spec.Version && (t.SpecHash == SpecHash(c) || t.SpecHash == spelledHash(c))
}

// declared returns the declared pod template.
func (in Input) declared() Template {
	if in.Declared != (Template{}) {
		return in.Declared
	}
	return DeclaredTemplate(in.Cluster)
}

// String returns the part of a member's file name that identifies the template.
func (t Template) String() string { return t.Version + "-" + t.SpecHash }

// isKey reports whether the template can be part of a ConfigMap key, which is not certain, because the annotations of a
// pod may have been edited manually.
func (t Template) isKey() bool {
	return t.Version != "" && t.SpecHash != "" && len(validation.IsConfigMapKey(t.String())) == 0
}

// ConfigKey returns the ConfigMap key of the configuration file that a pod with the given template reads.
func ConfigKey(pod string, t Template) string { return pod + "-" + t.String() + ".yaml" }

// templates returns the templates for which members have files: the template of new pods, and the templates of existing
// pods.
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

// templateOptions returns the options common to the files of one template. For the declared template, it derives the
// options from the spec. Other templates are no longer declared, so it reads their options from the live files. If live
// files are missing, it returns nil, except for the template of new pods: for this template, it uses the options in the
// spec that the template's etcd version supports.
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

// liveOptions returns the options common to the live files of one template, or nil.
func liveOptions(in Input, t Template) map[string]any {
	for ordinal := range MaxOrdinal + 1 {
		file := readFile(in.Live[ConfigKey(PodName(in.Cluster.Name, ordinal), t)])
		if file["data-dir"] == nil {
			continue // missing, or not written by Quorate
		}
		for _, key := range ownKeys {
			delete(file, key)
		}
		return file
	}
	return nil
}

// RunningQuota returns the database quota, in bytes, in the live file that a pod with the given template reads, or zero
// if it is unknown.
func RunningQuota(live map[string]string, pod string, t Template) int64 {
	number, _ := readFile(live[ConfigKey(pod, t)])["quota-backend-bytes"].(json.Number)
	quota, err := number.Int64()
	if err != nil || quota < 0 {
		return 0
	}
	return quota
}

// readFile returns the keys of a configuration file, or nil if it cannot be read.
func readFile(text string) map[string]any {
	var keys map[string]any
	if checkText(text) != nil || yaml.Unmarshal([]byte(text), &keys, exactly) != nil {
		return nil
	}
	return keys
}

// exactly is a decoder option that keeps numbers as written.
func exactly(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}
