package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Look reads one object of a cluster by kind and name, regardless of who created it, or returns nil if it does not
// exist.
func (c *Client) Look(ctx context.Context, kind, namespace, name string) (metav1.Object, error) {
	one, known := kinds[kind]
	if !known {
		return nil, fmt.Errorf("look for %s %s/%s: clusters do not have objects of this kind", kind, namespace, name)
	}
	object, err := one.get(ctx, c.typed, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", kind, namespace, name, err)
	}
	return object, nil
}

// LookCluster reads the current EtcdCluster, or returns nil if it does not exist. It requires only the right to list.
func (c *Client) LookCluster(ctx context.Context, namespace, name string) (metav1.Object, error) {
	list, err := c.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	switch {
	case err != nil:
		return nil, fmt.Errorf("get EtcdCluster %s/%s: %w", namespace, name, err)
	case len(list.Items) == 0:
		return nil, nil
	}
	return &list.Items[0], nil
}

// LookCustom reads a custom resource of any kind, or returns nil if it does not exist or its kind is unknown.
func (c *Client) LookCustom(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (
	*unstructured.Unstructured, error,
) {
	object, err := c.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s/%s: %w", resource.GroupResource(), namespace, name, err)
	}
	return object, nil
}

// Applied reports whether Quorate has ever applied the object.
func Applied(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationApply
	})
}

// StatusWrittenAt returns the time at which Quorate last wrote the status of an object, or the zero time if it never
// did.
func StatusWrittenAt(object metav1.Object) (last time.Time) {
	for _, m := range object.GetManagedFields() {
		if m.Manager == Manager && m.Subresource == "status" && m.Time != nil {
			last = m.Time.Time
		}
	}
	return last
}

// HasClaims reports whether selector selects any volume claim.
func (c *Client) HasClaims(ctx context.Context, namespace, selector string) (bool, error) {
	claims, err := c.typed.CoreV1().PersistentVolumeClaims(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("list PersistentVolumeClaims in %s: %w", namespace, err)
	}
	return len(claims.Items) > 0, nil
}

// Claims returns all volume claims in a namespace.
func (c *Client) Claims(ctx context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	var claims []corev1.PersistentVolumeClaim
	list := listing("PersistentVolumeClaims", c.typed.CoreV1().PersistentVolumeClaims(namespace).List,
		gathers[*corev1.PersistentVolumeClaim](&claims))
	if err := list(ctx, metav1.ListOptions{}); err != nil {
		return nil, fmt.Errorf("list namespace %s: %w", namespace, err)
	}
	return claims, nil
}

// Pods returns the pods that selector selects.
func (c *Client) Pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	list := listing("Pods", c.typed.CoreV1().Pods(namespace).List, gathers[*corev1.Pod](&pods))
	if err := list(ctx, metav1.ListOptions{LabelSelector: selector}); err != nil {
		return nil, fmt.Errorf("list namespace %s: %w", namespace, err)
	}
	return pods, nil
}

// HasPods reports whether selector selects any pod.
func (c *Client) HasPods(ctx context.Context, namespace, selector string) (bool, error) {
	pods, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("list pods in %s: %w", namespace, err)
	}
	return len(pods.Items) > 0, nil
}
