package targets

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
)

// filledIn is the default quota that earlier EtcdCluster definitions set, regardless of the volume size.
const filledIn = 2 << 30

// WithQuota sets the quota of etcd's database if it is not declared. The quota depends on the existing volumes, because
// a larger size in git does not change them. If members run with the default of an earlier definition, it is kept:
// their databases may have grown to that size, and a smaller quota would restart pods and might suddenly be exceeded.
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

// hadFilledIn reports whether an earlier definition has set the quota of a cluster: either the custom resource still
// contains that quota, or the pod template matches the spec with that quota. t must have that quota.
func (t Target) hadFilledIn(own *inventory.Cluster) bool {
	if c := own.Custom; c != nil && c.Spec.Etcd.Quota.Value() == filledIn {
		return true
	}
	set := t.statefulSet(own)
	return set != nil &&
		objects.ReadMetadata(set.Spec.Template.Annotations).Template().IsDeclared(&t.Cluster)
}

// volumeSize returns the size of the smallest volume that exists or will be created, or the declared size if there are
// no volumes. It compares approximate sizes, because exact comparisons of huge quantities take seconds.
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
		if size.AsApproximateFloat64() < smallest.AsApproximateFloat64() {
			smallest = size
		}
	}
	return smallest
}

func (t Target) statefulSet(own *inventory.Cluster) *appsv1.StatefulSet {
	return inventory.Get[*appsv1.StatefulSet](own, "StatefulSet", objects.NamesOf(t.Cluster.Name).StatefulSet)
}
