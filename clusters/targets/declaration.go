package targets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// AnnotationDeclaration is the annotation of the custom resource that contains a digest of the last applied
// declaration. Unlike the live object, the digest shows whether the source has removed a field.
const AnnotationDeclaration = "etcd.quorate.dev/declaration"

// Declaration returns the custom resource to apply: the source's declaration with Quorate's labels.
func (t Target) Declaration() map[string]any {
	object := runtime.DeepCopyJSON(t.Applied)
	schema.DropEmptyMaps(object)
	dropEmpty(object, "spec", "pod", "affinity")
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	merge(metadata, "labels", objects.Labels(t.Cluster.Name))
	merge(metadata, "annotations", map[string]string{AnnotationDeclaration: digest(t.Applied)})
	return object
}

// dropEmpty removes the field at path if it contains only empty values. Such a field requests nothing, and if it had
// content before, the API server would turn it into null.
func dropEmpty(object map[string]any, path ...string) {
	step, rest := path[0], path[1:]
	inner, isMap := object[step].(map[string]any)
	switch {
	case !isMap:
	case len(rest) > 0:
		dropEmpty(inner, rest...)
	default:
		maps.DeleteFunc(inner, func(_ string, value any) bool {
			part, isMap := value.(map[string]any)
			return isMap && len(part) == 0
		})
		if len(inner) == 0 {
			delete(object, step)
		}
	}
}

// merge adds entries to the map at m[field].
func merge(m map[string]any, field string, entries map[string]string) {
	existing, _ := m[field].(map[string]any)
	if existing == nil {
		existing = map[string]any{}
		m[field] = existing
	}
	for k, v := range entries {
		existing[k] = v
	}
}

func digest(object map[string]any) string {
	body, err := json.Marshal(object)
	if err != nil {
		return "" // cannot fail: the object contains only JSON types
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// Drift describes how the live custom resource differs from the source's declaration. It returns "" if they match, or
// if the source does not declare the cluster.
func (t Target) Drift(live *v1alpha1.EtcdCluster) string {
	if t.Applied == nil {
		return ""
	}
	switch {
	case live == nil:
		return "missing"
	case live.Annotations[AnnotationDeclaration] != digest(t.Applied):
		return "changed in git"
	}
	stated, err := typed(t.Declaration())
	if err != nil {
		return err.Error()
	}
	path := firstUnmet("", stated, asJSON(live))
	if path == "" {
		return ""
	}
	return path + " differs from the declaration"
}

// typed converts an object to the API type and back, so that values such as quantities are compared semantically.
func typed(object map[string]any) (any, error) {
	cluster := &v1alpha1.EtcdCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, cluster); err != nil {
		return nil, fmt.Errorf("read the declaration: %w", err)
	}
	return asJSON(cluster), nil
}

func asJSON(v any) any {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(body, &out) != nil {
		return nil
	}
	return out
}

// firstUnmet returns the path of the first field in stated that is missing or different in live, or "".
func firstUnmet(path string, stated, live any) string {
	fields, isMap := stated.(map[string]any)
	if !isMap {
		if reflect.DeepEqual(stated, live) {
			return ""
		}
		return path
	}
	have, _ := live.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		step := name
		if path != "" {
			step = path + "." + name
		}
		if unmet := firstUnmet(step, fields[name], have[name]); unmet != "" {
			return unmet
		}
	}
	return ""
}
