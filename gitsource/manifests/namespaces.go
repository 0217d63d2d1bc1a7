package manifests

import (
	"slices"
	"strings"
)

// allows reports whether clusters may be declared in a namespace.
func (o Options) allows(namespace string) bool {
	return len(o.AllowNamespaces) == 0 || slices.Contains(o.AllowNamespaces, namespace)
}

// refuseNamespace reports only that the declaration is not allowed. The problem does not name the cluster, because a
// source that may not declare a cluster must not be able to block it.
func (d *declaration) refuseNamespace(allowed []string) *declaration {
	refused := &declaration{object: d.object, room: 1}
	refused.problem("metadata.namespace",
		"the cluster %s is in the namespace %s, but the source may declare clusters only in %s",
		d.name, d.name.Namespace, strings.Join(allowed, ", "))
	return refused
}
