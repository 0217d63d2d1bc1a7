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

// inGit lists the metadata fields that users set. The API server sets the other fields.
var inGit = []string{"name", "namespace", "labels", "annotations"}

// checkMetadata sets the cluster's name and returns the object to apply, with its namespace. ok is false if the object
// does not have a usable name.
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
			d.problem("metadata."+key, "metadata.%s is set by the API server; remove it from git", key)
			delete(metadata, key)
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		d.checkTexts("metadata."+key, metadata, key)
	}
	return applied, true
}

// checkTexts reports values that are not text in the map metadata[key], and removes these values.
func (d *declaration) checkTexts(path string, metadata map[string]any, key string) {
	texts, isMap := metadata[key].(map[string]any)
	if metadata[key] != nil && !isMap {
		d.problem(path, "%s must map strings to strings", path)
		delete(metadata, key)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if _, isText := texts[name].(string); !isText {
			d.notText(path+"."+name, kindOfJSON(texts[name]))
			delete(texts, name)
		}
	}
}

func (d *declaration) checkName(metadata map[string]any) bool {
	name, isText := metadata["name"].(string)
	namespace, isTextToo := metadata["namespace"].(string)
	switch {
	case metadata["name"] != nil && !isText:
		d.notText("metadata.name", kindOfJSON(metadata["name"]))
	case name == "" && metadata["generateName"] != nil:
		d.problem("metadata.generateName", "metadata.generateName would create a new cluster each time; set "+
			"metadata.name")
	case name == "":
		d.problem("metadata", "metadata.name is missing")
	case !isTextToo:
		d.notText("metadata.namespace", kindOfJSON(metadata["namespace"]))
	default:
		d.name = types.NamespacedName{Namespace: namespace, Name: name}
		return true
	}
	return false
}

// isObjectMetaField reports whether name is a field of Kubernetes ObjectMeta.
func isObjectMetaField(name string) bool {
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return true
		}
	}
	return false
}
