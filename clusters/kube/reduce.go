package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reduce removes the unused parts of a listed object.
func reduce(object metav1.Object) {
	if pod, is := object.(*corev1.Pod); is {
		pod.Spec = withoutContainers(pod.Spec)
	}
	forgetOthers(object)
}

// forgetOthers removes the managed fields of other managers, which make up a third of the size of an object.
func forgetOthers(object metav1.Object) {
	object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(),
		func(m metav1.ManagedFieldsEntry) bool { return m.Manager != Manager }))
}

// withoutContainers reduces a pod spec to its node and claimed volumes. The rest is compared in the template from which
// the pod was created.
func withoutContainers(spec corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{NodeName: spec.NodeName, Volumes: slices.DeleteFunc(spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil })}
}
