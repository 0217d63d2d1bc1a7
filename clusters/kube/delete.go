package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Delete deletes an object as it was read, and tells whether it was still there: one of the same name with another UID stays, and so does one that
// has changed since, which is a conflict. What an object owns goes after it, and a pod has its grace period.
func (c *Client) Delete(ctx context.Context, kind string, read metav1.Object) (bool, error) {
	namespace, name := read.GetNamespace(), read.GetName()
	uid, version := over(read)
	var remove func(ctx context.Context, name string, opts metav1.DeleteOptions) error
	switch kind {
	case "ConfigMap":
		remove = c.typed.CoreV1().ConfigMaps(namespace).Delete
	case "Secret":
		remove = c.typed.CoreV1().Secrets(namespace).Delete
	case "Service":
		remove = c.typed.CoreV1().Services(namespace).Delete
	case "Pod":
		remove = c.typed.CoreV1().Pods(namespace).Delete
	case "PersistentVolumeClaim":
		remove = c.typed.CoreV1().PersistentVolumeClaims(namespace).Delete
	case "PodDisruptionBudget":
		remove = c.typed.PolicyV1().PodDisruptionBudgets(namespace).Delete
	case "NetworkPolicy":
		remove = c.typed.NetworkingV1().NetworkPolicies(namespace).Delete
	case "StatefulSet":
		remove = c.typed.AppsV1().StatefulSets(namespace).Delete
	default:
		return false, fmt.Errorf("delete %s %s/%s: not one of the kinds of a cluster", kind, namespace, name)
	}
	background := metav1.DeletePropagationBackground
	err := remove(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		PropagationPolicy: &background,
	})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete %s %s/%s: %w", kind, namespace, name, err)
	}
	return true, nil
}
