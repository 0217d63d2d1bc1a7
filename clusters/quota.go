package clusters

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
)

// filledIn is the quota that earlier definitions of EtcdCluster have filled in where it was left
// out, whatever the volume.
const filledIn = 2 << 30

// withQuota completes a target with the quota of etcd's database where none is stated. It follows
// the volumes as members are made with them, which a larger size in git does not change. Where an
// earlier definition has filled one in, members run with that, and their databases may have grown
// up to it: it stays, so that nothing is restarted and no database is suddenly too large.
func (t target) withQuota(own *clusterObjects) target {
	etcd := &t.cluster.Spec.Etcd
	if !etcd.Quota.IsZero() {
		return t
	}
	if c := own.custom; c != nil && len(schema.Immense(c.Spec)) == 0 && c.Spec.Etcd.Quota.Value() == filledIn {
		etcd.Quota = c.Spec.Etcd.Quota
		return t
	}
	size := t.cluster.Spec.Storage.Size
	set := get[*appsv1.StatefulSet](own, "StatefulSet", objects.NamesOf(t.cluster.Name).StatefulSet)
	if set != nil && len(set.Spec.VolumeClaimTemplates) > 0 {
		size = set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
	}
	etcd.Quota = objects.DefaultQuota(size)
	return t
}
