package schema

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// mostDigits is how many digits a quantity may have before or after its point: an exa has 18. To
// compare one such as 1e20000000 with another takes seconds.
const mostDigits = 18

// Immense says which quantities of a spec are beyond all that there is, each as a problem; none if
// all can be worked with.
func Immense(spec v1alpha1.EtcdClusterSpec) []string {
	var problems []string
	check := func(path string, q resource.Quantity) {
		own := q.DeepCopy() // AsDec changes what it is asked of
		if scale := own.AsDec().Scale(); scale < -mostDigits || scale > mostDigits {
			problems = append(problems, fmt.Sprintf("%s: a quantity has at most %d digits before or after its point",
				path, mostDigits))
		}
	}
	check("spec.storage.size", spec.Storage.Size)
	check("spec.etcd.quota", spec.Etcd.Quota)
	check("spec.etcd.maxRequestBytes", spec.Etcd.MaxRequestBytes)
	for kind, list := range map[string]map[string]resource.Quantity{"limits": spec.Pod.Resources.Limits,
		"requests": spec.Pod.Resources.Requests} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			check("spec.pod.resources."+kind+"."+name, list[name])
		}
	}
	slices.Sort(problems)
	return problems
}
