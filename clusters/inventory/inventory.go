// Package inventory sorts listed objects by cluster and keeps them packed until their cluster is opened.
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

// String returns namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// ParseKey returns the key of namespace/name.
func ParseKey(cluster string) Key {
	namespace, name, _ := strings.Cut(cluster, "/")
	return Key{namespace, name}
}

// KeyOf returns the key of a custom resource's cluster.
func KeyOf(custom *v1alpha1.EtcdCluster) Key { return Key{custom.Namespace, custom.Name} }

// Listed holds the listed objects of a cluster. The data that every pass needs for all clusters is available directly.
// The objects are packed until the cluster is opened.
type Listed struct {
	Custom *v1alpha1.EtcdCluster
	// Unreadable is the error if the custom resource could not be decoded, or nil. If it is set, Custom contains little
	// more than the metadata.
	Unreadable error
	// Applied is the number of applied objects, Pods the number of member pods, and Claims the number of volume
	// claims.
	Applied, Pods, Claims int
	// Record is the record as stored in the ConfigMap. HasConfigMap is whether the ConfigMap exists.
	Record       string
	HasConfigMap bool

	contents *contents
}

// Readable reports whether the custom resource, if it exists, could be read.
func (l *Listed) Readable() bool { return l.Unreadable == nil }

// ClusterID returns the ID in the status or, if it is missing, in the record. It returns zero if both are missing.
func (l *Listed) ClusterID() decide.ID {
	if id := ReportedClusterID(l.Custom); id != 0 {
		return id
	}
	if l.Record == "" {
		return 0
	}
	record, err := objects.DecodeRecord(l.Record)
	if err != nil {
		return 0 // the error is reported with the cluster itself
	}
	return record.ClusterID
}

// Empty reports whether a cluster has no custom resource, no ConfigMap and no volume.
func (l *Listed) Empty() bool { return l.Custom == nil && l.Claims == 0 && !l.HasConfigMap }

// ReportedClusterID returns the ID in the status of a custom resource, or zero.
func ReportedClusterID(custom *v1alpha1.EtcdCluster) decide.ID {
	id, err := strconv.ParseUint(custom.Status.ClusterID, 16, 64)
	if err != nil {
		return 0
	}
	return decide.ID(id)
}

// ByCluster maps clusters to their listed objects.
type ByCluster map[Key]*Listed

// Of returns the listed objects of a cluster, or an empty result if the cluster has none.
func (i ByCluster) Of(k Key) *Listed {
	if l := i[k]; l != nil {
		return l
	}
	return &Listed{}
}

// At returns the listed objects of a cluster, so that the caller can add to them. It creates the entry if it does not
// exist.
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
