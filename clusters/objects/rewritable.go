package objects

import (
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// podTemplates are the paths of the pod templates in the objects that have one.
var podTemplates = map[string]string{
	"StatefulSet": "spec.template.",
	"CronJob":     "spec.jobTemplate.spec.template.",
}

// rewritable are the fields of a pod template that admission may set to another value than Quorate applies: members
// run as securely with it, and no rule depends on it. Each stands for the fields below it; [] is an element of a list.
var rewritable = []string{
	"metadata.annotations",
	"metadata.labels",
	"spec.affinity",
	"spec.containers[].resources",
	"spec.imagePullSecrets",
	"spec.initContainers[].resources",
	"spec.nodeSelector",
	"spec.priorityClassName",
	"spec.runtimeClassName",
	"spec.schedulerName",
	"spec.terminationGracePeriodSeconds",
	"spec.tolerations",
	"spec.topologySpreadConstraints",
}

// MayBeRewritten reports whether an admission policy or webhook may set that field of a cluster's object to another
// value than Quorate applies. A field that is not listed may not: it may weaken security, or what keeps quorum.
func MayBeRewritten(kind, path string) bool {
	if kind == v1alpha1.Kind {
		return true // passes go by the declaration
	}
	for _, ours := range []string{v1alpha1.GroupVersion.Group + "/", LabelManagedBy, labelComponent} {
		if strings.Contains(path, ours) {
			return false // objects are found, and pods compared, by these
		}
	}
	if template := podTemplates[kind]; template != "" {
		if inner, within := strings.CutPrefix(path, template); within {
			return slices.ContainsFunc(rewritable, func(field string) bool { return isBelow(inner, field) })
		}
	}
	return isBelow(path, "metadata.annotations")
}

// isBelow reports whether a path is that field, or one below it.
func isBelow(path, field string) bool {
	for i, part := range strings.Split(field, "[]") {
		rest, found := strings.CutPrefix(path, part)
		if !found {
			return false
		}
		if i < strings.Count(field, "[]") {
			element, after, closed := strings.Cut(rest, "]")
			if !closed || !strings.HasPrefix(element, "[") {
				return false
			}
			rest = after
		}
		path = rest
	}
	return path == "" || path[0] == '.' || path[0] == '['
}
