package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// mostDigits is how many digits a quantity may have before or after its point: an exa has 18. To
// compare one such as 1e20000000 with another takes seconds.
const mostDigits = 18

var tooManyDigits = fmt.Sprintf("a quantity has at most %d digits before or after its point", mostDigits)

// Immense says which quantities of a spec are beyond all that there is, each as a problem; none if
// all can be worked with.
func Immense(spec v1alpha1.EtcdClusterSpec) []string {
	var paths immense
	paths.check("spec.storage.size", spec.Storage.Size)
	paths.check("spec.etcd.quota", spec.Etcd.Quota)
	paths.check("spec.etcd.maxRequestBytes", spec.Etcd.MaxRequestBytes)
	for kind, list := range map[string]map[string]resource.Quantity{
		"limits": spec.Pod.Resources.Limits, "requests": spec.Pod.Resources.Requests,
	} {
		for name, q := range list {
			paths.check("spec.pod.resources."+kind+"."+name, q)
		}
	}
	slices.Sort(paths)
	for i, path := range paths {
		paths[i] = path + ": " + tooManyDigits
	}
	return paths
}

// ImmenseIn returns the paths of those of an object whose rules have not been evaluated yet: they compare its
// quantities.
func ImmenseIn(object map[string]any) []string {
	var paths immense
	check := func(path string, value any) {
		text, _ := value.(string)
		if q, err := resource.ParseQuantity(text); err == nil {
			paths.check(path, q)
		}
	}
	for _, path := range []string{"spec.storage.size", "spec.etcd.quota", "spec.etcd.maxRequestBytes"} {
		value, _, _ := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
		check(path, value)
	}
	for _, kind := range []string{"limits", "requests"} {
		list, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "pod", "resources", kind)
		named, _ := list.(map[string]any)
		for name, value := range named {
			check("spec.pod.resources."+kind+"."+name, value)
		}
	}
	slices.Sort(paths)
	return paths
}

// immense are the paths of quantities that are.
type immense []string

func (paths *immense) check(path string, q resource.Quantity) {
	own := q.DeepCopy() // AsDec changes what it is asked of
	if scale := own.AsDec().Scale(); scale < -mostDigits || scale > mostDigits {
		*paths = append(*paths, path)
	}
}
