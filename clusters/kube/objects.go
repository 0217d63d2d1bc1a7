package kube

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
)

// Apply applies one object as its apply configuration states it. Of the fields that it states, Quorate takes ownership,
// whoever had it. Stating a resourceVersion makes the API server refuse if the object has changed since.
func (c *Client) Apply(ctx context.Context, object any) error {
	opts := metav1.ApplyOptions{FieldManager: Manager, Force: true}
	var err error
	switch o := object.(type) {
	case *applycorev1.ConfigMapApplyConfiguration:
		_, err = c.typed.CoreV1().ConfigMaps(*o.Namespace).Apply(ctx, o, opts)
	case *applycorev1.SecretApplyConfiguration:
		_, err = c.typed.CoreV1().Secrets(*o.Namespace).Apply(ctx, o, opts)
	case *applycorev1.ServiceApplyConfiguration:
		_, err = c.typed.CoreV1().Services(*o.Namespace).Apply(ctx, o, opts)
	case *applypolicyv1.PodDisruptionBudgetApplyConfiguration:
		_, err = c.typed.PolicyV1().PodDisruptionBudgets(*o.Namespace).Apply(ctx, o, opts)
	case *applyappsv1.StatefulSetApplyConfiguration:
		_, err = c.typed.AppsV1().StatefulSets(*o.Namespace).Apply(ctx, o, opts)
	default:
		return fmt.Errorf("apply %T: not one of the kinds of a cluster", object)
	}
	return err
}

// ApplyOver applies a ConfigMap over the version of it that was read, and refuses if it has changed since. Without one
// read it applies it as it is.
func (c *Client) ApplyOver(ctx context.Context, object any, read metav1.Object) error {
	configMap, ok := object.(*applycorev1.ConfigMapApplyConfiguration)
	if ok && read != nil {
		configMap.WithResourceVersion(read.GetResourceVersion())
	}
	return c.Apply(ctx, object)
}

// Owned returns what Quorate owns of a live object, as an apply configuration. It needs no request: managedFields tells.
func Owned(live any) (any, error) {
	switch o := live.(type) {
	case *corev1.ConfigMap:
		return applycorev1.ExtractConfigMap(o, Manager)
	case *corev1.Secret:
		return applycorev1.ExtractSecret(o, Manager)
	case *corev1.Service:
		return applycorev1.ExtractService(o, Manager)
	case *policyv1.PodDisruptionBudget:
		return applypolicyv1.ExtractPodDisruptionBudget(o, Manager)
	case *appsv1.StatefulSet:
		return applyappsv1.ExtractStatefulSet(o, Manager)
	}
	return nil, fmt.Errorf("read what Quorate owns of a %T: not one of the kinds of a cluster", live)
}

// resources of the kinds of a cluster.
var resources = map[string]schema.GroupVersionResource{
	"PersistentVolumeClaim": corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	"ConfigMap":             corev1.SchemeGroupVersion.WithResource("configmaps"),
	"Secret":                corev1.SchemeGroupVersion.WithResource("secrets"),
	"Service":               corev1.SchemeGroupVersion.WithResource("services"),
	"PodDisruptionBudget":   policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
	"StatefulSet":           appsv1.SchemeGroupVersion.WithResource("statefulsets"),
}

// Look finds an object by kind and name: whether there is one, and whether Quorate has ever applied it.
func (c *Client) Look(ctx context.Context, kind, namespace, name string) (exists, ours bool, err error) {
	object, err := c.dynamic.Resource(resources[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("look for %s %s/%s: %w", kind, namespace, name, err)
	}
	return true, AppliedByUs(object), nil
}

// AppliedByUs reports whether Quorate has ever applied that object.
func AppliedByUs(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationApply
	})
}

// ConfigMap reads one ConfigMap; nil if there is none.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	object, err := c.typed.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return object, nil
}

// HasClaims reports whether there is any volume claim that selector selects.
func (c *Client) HasClaims(ctx context.Context, namespace, selector string) (bool, error) {
	claims, err := c.typed.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for volume claims in %s: %w", namespace, err)
	}
	return len(claims.Items) > 0, nil
}
