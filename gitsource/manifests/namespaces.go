package manifests

import (
	"slices"
	"strings"
)

// allows says whether clusters may be declared in a namespace.
func (o Options) allows(namespace string) bool {
	return len(o.AllowNamespaces) == 0 || slices.Contains(o.AllowNamespaces, namespace)
}

// refuseNamespace says of a declaration nothing but that it is not allowed. The problem is not that
// of the cluster: who may not declare it may not hold it up either.
func (d *declaration) refuseNamespace(allowed []string) *declaration {
	refused := &declaration{object: d.object, room: 1}
	refused.problem("metadata.namespace",
		"the cluster %s is in the namespace %s, and the source may declare clusters in %s alone",
		d.name, d.name.Namespace, strings.Join(allowed, ", "))
	return refused
}
