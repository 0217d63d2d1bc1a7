package targets

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
)

// filledIn is the quota that earlier definitions of EtcdCluster have filled in where it was left
// out, whatever the volume.
const filledIn = 2 << 30

// WithQuota completes a target with the quota of etcd's database where none is stated. It follows
// the volumes that there are, which a larger size in git does not change. Where members run with
// one that an earlier definition has filled in, their databases may have grown up to it: it stays,
// so that nothing is restarted and no database is suddenly too large.
func (t Target) WithQuota(own *inventory.Cluster) Target {
	quota := &t.Cluster.Spec.Etcd.Quota
	if !quota.IsZero() {
		return t
	}
	*quota = *resource.NewQuantity(filledIn, resource.BinarySI)
	if !t.hadFilledIn(own) {
		*quota = objects.DefaultQuota(t.volumeSize(own))
	}
	return t
}

// hadFilledIn reports whether an earlier definition has filled in the quota of a cluster: the
// custom resource still says so, or its pods are made as declared with it. The target has it.
func (t Target) hadFilledIn(own *inventory.Cluster) bool {
	if c := own.Custom; c != nil && c.Spec.Etcd.Quota.Value() == filledIn {
		return true
	}
	set := t.statefulSet(own)
	return set != nil &&
		objects.ReadMetadata(set.Spec.Template.Annotations).Template().IsDeclared(&t.Cluster)
}

// volumeSize is that of the smallest volume that there is or is to be made; the declared one where
// there is none.
func (t Target) volumeSize(own *inventory.Cluster) resource.Quantity {
	var sizes []resource.Quantity
	if set := t.statefulSet(own); set != nil && len(set.Spec.VolumeClaimTemplates) > 0 {
		sizes = append(sizes, set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage])
	}
	for _, claim := range own.Claims {
		sizes = append(sizes, claim.Spec.Resources.Requests[corev1.ResourceStorage])
	}
	if len(sizes) == 0 {
		return t.Cluster.Spec.Storage.Size
	}
	smallest := sizes[0]
	for _, size := range sizes[1:] {
		if size.Cmp(smallest) < 0 {
			smallest = size
		}
	}
	return smallest
}

func (t Target) statefulSet(own *inventory.Cluster) *appsv1.StatefulSet {
	return inventory.Get[*appsv1.StatefulSet](own, "StatefulSet", objects.NamesOf(t.Cluster.Name).StatefulSet)
}
