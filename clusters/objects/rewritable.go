package objects

import (
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// podTemplates maps kinds to the path of their pod template.
var podTemplates = map[string]string{
	"StatefulSet": "spec.template.",
	"CronJob":     "spec.jobTemplate.spec.template.",
}

// rewritable lists the pod template fields that admission may set to values other than the applied values, because
// neither security nor any rule depends on these fields. Each entry includes the fields below it. [] matches any
// element of a list.
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

// MayBeRewritten reports whether an admission policy or webhook may set a field to a value other than the applied
// value. Fields that are not listed may not be rewritten, because this could weaken security or endanger quorum.
func MayBeRewritten(kind, path string) bool {
	if kind == v1alpha1.Kind {
		return true // passes use the declared values
	}
	for _, ours := range []string{v1alpha1.GroupVersion.Group + "/", LabelManagedBy, labelComponent} {
		if strings.Contains(path, ours) {
			return false // used to find objects and compare pods
		}
	}
	if template := podTemplates[kind]; template != "" {
		if inner, within := strings.CutPrefix(path, template); within {
			return slices.ContainsFunc(rewritable, func(field string) bool { return isBelow(inner, field) })
		}
	}
	return isBelow(path, "metadata.annotations")
}

// isBelow reports whether a path is the given field or a field below it.
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
