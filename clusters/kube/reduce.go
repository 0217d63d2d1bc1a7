package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reduce leaves out of a listed object what nobody asks of it.
func reduce(object metav1.Object) {
	if pod, is := object.(*corev1.Pod); is {
		pod.Spec = withoutContainers(pod.Spec)
	}
	forgetOthers(object)
}

// forgetOthers leaves out what an object says of other field managers, which is a third of it.
func forgetOthers(object metav1.Object) {
	object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(),
		func(m metav1.ManagedFieldsEntry) bool { return m.Manager != Manager }))
}

// withoutContainers is where a pod runs, and on which volumes. What else it is made of is compared in the template
// that it is made from.
func withoutContainers(spec corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{NodeName: spec.NodeName, Volumes: slices.DeleteFunc(spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil })}
}
