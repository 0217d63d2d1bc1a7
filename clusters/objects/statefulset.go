package objects

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// statefulSet returns the StatefulSet that runs a pod for every recorded member. It never deletes volumes and, because
// of OnDelete, never replaces pods by itself: Quorate determines the order of a rollout.
func statefulSet(in Input) (*applyappsv1.StatefulSetApplyConfiguration, error) {
	if in.Kept != nil {
		return keptStatefulSet(in)
	}
	c := in.Cluster
	template, err := podTemplate(c, in.declared())
	if err != nil {
		return nil, err
	}
	keep := appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	return applyappsv1.StatefulSet(NamesOf(c.Name).StatefulSet, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(applyappsv1.StatefulSetSpec().
			WithReplicas(pods(in)).
			WithServiceName(NamesOf(c.Name).Service).
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(applyappsv1.StatefulSetUpdateStrategy().
				WithType(appsv1.OnDeleteStatefulSetStrategyType)).
			WithPersistentVolumeClaimRetentionPolicy(applyappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy().
				WithWhenDeleted(keep).WithWhenScaled(keep)).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(Selector(c.Name))).
			WithTemplate(template).
			WithVolumeClaimTemplates(volumeClaim(in))), nil
}

// keptStatefulSet returns Quorate's fields of the live StatefulSet with a current owner and number of pods. The pod
// template does not change.
func keptStatefulSet(in Input) (*applyappsv1.StatefulSetApplyConfiguration, error) {
	kept, err := convert[*applyappsv1.StatefulSetApplyConfiguration](in.Kept)
	if err != nil {
		return nil, err
	}
	if kept.Spec == nil {
		kept.Spec = applyappsv1.StatefulSetSpec()
	}
	kept.Spec.WithReplicas(pods(in))
	kept.OwnerReferences = nil
	return kept.WithOwnerReferences(owner(in.Cluster)), nil
}

// pods returns the number of pods that Kubernetes must run. It is zero while a volume is being filled, or if the
// lifecycle is not Running.
func pods(in Input) int32 {
	if in.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning || in.Record.Restoring() || in.Record.Recovering() {
		return 0
	}
	return int32(in.Record.Replicas())
}

// volumeClaim returns the template of the members' volumes. Server-side apply treats the list of templates as a single
// value, so the template must include the volume mode, which the API server would otherwise fill in. Differences
// ignores the other defaults.
func volumeClaim(in Input) *applycorev1.PersistentVolumeClaimApplyConfiguration {
	c := in.Cluster
	size := resourceList(map[string]resource.Quantity{string(corev1.ResourceStorage): c.Spec.Storage.Size})
	spec := applycorev1.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithVolumeMode(corev1.PersistentVolumeFilesystem).
		WithResources(applycorev1.VolumeResourceRequirements().WithRequests(*size))
	if class := c.Spec.Storage.StorageClassName; class != nil {
		spec.WithStorageClassName(*class)
	}
	// Do not use the claim's constructor, which would set a kind and a namespace.
	return (&applycorev1.PersistentVolumeClaimApplyConfiguration{}).
		WithName(volumeData).
		WithLabels(MemberLabels(c.Name)).
		WithAnnotations(map[string]string{AnnotationToken: in.Record.Token}).
		WithSpec(spec)
}

// ScaledToZero returns Quorate's fields of a StatefulSet, as an apply configuration, with zero replicas. If Quorate
// does not own any fields, for example after a restore, the result contains only the replicas. It returns an error if
// the StatefulSet does not exist.
func ScaledToZero(owned any) (any, error) {
	set, ok := owned.(*applyappsv1.StatefulSetApplyConfiguration)
	if !ok || set == nil {
		return nil, errors.New("the StatefulSet is missing")
	}
	if set.Spec == nil {
		set.WithSpec(applyappsv1.StatefulSetSpec())
	}
	set.Spec.WithReplicas(0)
	return set, nil
}
