package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// mostDigits is how many digits a quantity may have before or after its point: an exa has 18. To
// compare one such as 1e20000000 with another takes seconds.
const mostDigits = 18

// Immense says which quantities of a spec are beyond all that there is, each as a problem; none if
// all can be worked with.
func Immense(spec v1alpha1.EtcdClusterSpec) []string {
	quantities := map[string]resource.Quantity{
		"storage.size": spec.Storage.Size, "etcd.quota": spec.Etcd.Quota,
		"etcd.maxRequestBytes": spec.Etcd.MaxRequestBytes,
	}
	for kind, list := range map[string]map[string]resource.Quantity{
		"limits": spec.Pod.Resources.Limits, "requests": spec.Pod.Resources.Requests,
	} {
		for name, q := range list {
			quantities["pod.resources."+kind+"."+name] = q
		}
	}
	return immense(quantities)
}

// immenseIn says the same of an object whose rules have not been evaluated yet: they compare its quantities.
func immenseIn(object map[string]any) []string {
	quantities := map[string]resource.Quantity{}
	add := func(path string, value any) {
		if text, is := value.(string); is {
			if q, err := resource.ParseQuantity(text); err == nil {
				quantities[path] = q
			}
		}
	}
	for _, path := range []string{"storage.size", "etcd.quota", "etcd.maxRequestBytes"} {
		value, _, _ := unstructured.NestedFieldNoCopy(object, append([]string{"spec"}, strings.Split(path, ".")...)...)
		add(path, value)
	}
	for _, kind := range []string{"limits", "requests"} {
		list, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "pod", "resources", kind)
		named, _ := list.(map[string]any)
		for name, value := range named {
			add("pod.resources."+kind+"."+name, value)
		}
	}
	return immense(quantities)
}

// immense says which quantities are, by their paths in the spec.
func immense(quantities map[string]resource.Quantity) (problems []string) {
	for _, path := range slices.Sorted(maps.Keys(quantities)) {
		own := quantities[path].DeepCopy() // AsDec changes what it is asked of
		if scale := own.AsDec().Scale(); scale < -mostDigits || scale > mostDigits {
			problems = append(problems, fmt.Sprintf(
				"spec.%s: a quantity has at most %d digits before or after its point", path, mostDigits))
		}
	}
	return problems
}
