// Package inventory sorts what was listed by the cluster it belongs to, and keeps it packed until that is looked at.
package inventory

import (
	"strconv"
	"strings"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Key names a cluster.
type Key struct{ Namespace, Name string }

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// ParseKey is the key of namespace/name.
func ParseKey(cluster string) Key {
	namespace, name, _ := strings.Cut(cluster, "/")
	return Key{namespace, name}
}

// KeyOf is the key of the cluster that a custom resource is about.
func KeyOf(custom *v1alpha1.EtcdCluster) Key { return Key{custom.Namespace, custom.Name} }

// Listed is what was listed of one cluster. What is asked of all clusters at once is at hand; the objects are packed
// until the cluster is looked at.
type Listed struct {
	Custom *v1alpha1.EtcdCluster
	// Unreadable says why the custom resource could not be read; nil if it was. Custom holds little
	// more than its metadata then.
	Unreadable error
	// Applied is how many objects there are of the kinds that are applied, Pods how many pods of members, and Claims
	// how many volume claims.
	Applied, Pods, Claims int
	// Record is what earlier passes wrote down, as it is kept in the ConfigMap, and HasConfigMap whether there is one.
	Record       string
	HasConfigMap bool

	contents *contents
}

// Readable reports whether the custom resource, if there is one, could be read.
func (l *Listed) Readable() bool { return l.Unreadable == nil }

// ClusterID is what the status or the record says; zero if neither does.
func (l *Listed) ClusterID() decide.ID {
	if id := ReportedClusterID(l.Custom); id != 0 {
		return id
	}
	if l.Record == "" {
		return 0
	}
	record, err := objects.DecodeRecord(l.Record)
	if err != nil {
		return 0 // it is reported with the cluster itself
	}
	return record.ClusterID
}

// Empty reports whether there is neither a custom resource nor a record nor a volume of a cluster
// of that name.
func (l *Listed) Empty() bool { return l.Custom == nil && l.Claims == 0 && !l.HasConfigMap }

// ReportedClusterID is the ID in the status of a custom resource; zero if there is none.
func ReportedClusterID(custom *v1alpha1.EtcdCluster) decide.ID {
	id, err := strconv.ParseUint(custom.Status.ClusterID, 16, 64)
	if err != nil {
		return 0
	}
	return decide.ID(id)
}

// ByCluster is what was listed, by cluster.
type ByCluster map[Key]*Listed

// Of returns what was listed of a cluster, which may be nothing.
func (i ByCluster) Of(k Key) *Listed {
	if l := i[k]; l != nil {
		return l
	}
	return &Listed{}
}

// At returns what was listed of a cluster, for more to be put there.
func (i ByCluster) At(namespace, cluster string) *Listed {
	k := Key{namespace, cluster}
	if i[k] == nil {
		i[k] = &Listed{contents: &contents{}}
	}
	return i[k]
}

// Managed selects the clusters whose custom resource was applied by Quorate.
func (i ByCluster) Managed() ByCluster {
	selected := ByCluster{}
	for k, l := range i {
		if l.Custom != nil && l.Custom.Labels[objects.LabelManagedBy] == objects.ManagedBy {
			selected[k] = l
		}
	}
	return selected
}
