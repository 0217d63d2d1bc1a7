package kube

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Whole has every object kept whole.
func Whole(metav1.Object) bool { return true }

// reduce leaves out of a listed object what nobody asks of it, as soon as its page has come.
func (i *Inventory) reduce(item runtime.Object) error {
	if pod, is := item.(*corev1.Pod); is {
		pod.Spec = withoutContainers(pod.Spec)
	}
	if object, err := meta.Accessor(item); err == nil && !i.whole(object) {
		bare(item)
	}
	return forgetOthers(item)
}

// forgetOthers leaves out what an object says of other field managers, which is a third of it.
func forgetOthers(item runtime.Object) error {
	object, err := meta.Accessor(item)
	if err == nil {
		object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(),
			func(m metav1.ManagedFieldsEntry) bool { return m.Manager != Manager }))
	}
	return err
}

// withoutContainers is where a pod runs, and on which volumes. What else it is made of is compared in the template
// that it is made from.
func withoutContainers(spec corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{NodeName: spec.NodeName, Volumes: slices.DeleteFunc(spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil })}
}

// bare leaves of an object little more than its metadata. That of custom resources and of ConfigMaps, which say what
// a cluster is, stays.
func bare(item runtime.Object) {
	switch o := item.(type) {
	case *corev1.Secret:
		*o = corev1.Secret{ObjectMeta: o.ObjectMeta}
	case *corev1.Service:
		*o = corev1.Service{ObjectMeta: o.ObjectMeta}
	case *corev1.Pod:
		*o = corev1.Pod{ObjectMeta: o.ObjectMeta}
	case *corev1.PersistentVolumeClaim:
		*o = corev1.PersistentVolumeClaim{ObjectMeta: o.ObjectMeta}
	case *appsv1.StatefulSet:
		*o = appsv1.StatefulSet{ObjectMeta: o.ObjectMeta}
	case *policyv1.PodDisruptionBudget:
		*o = policyv1.PodDisruptionBudget{ObjectMeta: o.ObjectMeta}
	case *networkingv1.NetworkPolicy:
		*o = networkingv1.NetworkPolicy{ObjectMeta: o.ObjectMeta}
	case *batchv1.CronJob:
		*o = batchv1.CronJob{ObjectMeta: o.ObjectMeta}
	case *batchv1.Job:
		*o = batchv1.Job{ObjectMeta: o.ObjectMeta}
	default:
		return
	}
	if object, err := meta.Accessor(item); err == nil {
		object.SetManagedFields(nil)
	}
}
