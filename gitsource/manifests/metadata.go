package manifests

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// inGit are the fields of metadata that a person writes; the API server sets the others.
var inGit = []string{"name", "namespace", "labels", "annotations"}

// checkMetadata names the cluster and returns the object as it is to be applied, with its
// namespace. It is not ok if there is no name to go on with.
func (d *declaration) checkMetadata(namespace string) (applied map[string]any, ok bool) {
	applied = runtime.DeepCopyJSON(d.value)
	metadata, _ := applied["metadata"].(map[string]any)
	if ns := metadata["namespace"]; metadata != nil && (ns == nil || ns == "") {
		metadata["namespace"] = namespace
	}
	if !d.checkName(metadata) {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(inGit, key) && isObjectMetaField(key) {
			d.problem("metadata."+key, "metadata.%s is set by the API server; it has no place in git", key)
			delete(metadata, key)
		}
	}
	return applied, true
}

func (d *declaration) checkName(metadata map[string]any) bool {
	name, isText := metadata["name"].(string)
	namespace, isTextToo := metadata["namespace"].(string)
	switch {
	case metadata["name"] != nil && !isText:
		d.problem("metadata.name", "metadata.name is not text; put it in quotes")
	case name == "" && metadata["generateName"] != nil:
		d.problem("metadata.generateName", "metadata.generateName would make another cluster each time; give it a name")
	case name == "":
		d.problem("metadata", "metadata.name is missing")
	case !isTextToo:
		d.problem("metadata.namespace", "metadata.namespace is not text; put it in quotes")
	default:
		d.name = types.NamespacedName{Namespace: namespace, Name: name}
		return true
	}
	return false
}

// isObjectMetaField says whether Kubernetes has that field in metadata.
func isObjectMetaField(name string) bool {
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return true
		}
	}
	return false
}
