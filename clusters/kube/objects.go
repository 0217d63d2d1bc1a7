package kube

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
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
	case *applynetworkingv1.NetworkPolicyApplyConfiguration:
		_, err = c.typed.NetworkingV1().NetworkPolicies(*o.Namespace).Apply(ctx, o, opts)
	case *applyappsv1.StatefulSetApplyConfiguration:
		_, err = c.typed.AppsV1().StatefulSets(*o.Namespace).Apply(ctx, o, opts)
	default:
		return fmt.Errorf("apply %T: not one of the kinds of a cluster", object)
	}
	return err
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
	case *networkingv1.NetworkPolicy:
		return applynetworkingv1.ExtractNetworkPolicy(o, Manager)
	case *appsv1.StatefulSet:
		return applyappsv1.ExtractStatefulSet(o, Manager)
	}
	return nil, fmt.Errorf("read what Quorate owns of a %T: not one of the kinds of a cluster", live)
}

// Look reads one object of a cluster by kind and name, whoever made it; nil if there is none.
func (c *Client) Look(ctx context.Context, kind, namespace, name string) (metav1.Object, error) {
	var object metav1.Object
	var err error
	switch opts := (metav1.GetOptions{}); kind {
	case "ConfigMap":
		object, err = c.typed.CoreV1().ConfigMaps(namespace).Get(ctx, name, opts)
	case "Secret":
		object, err = c.typed.CoreV1().Secrets(namespace).Get(ctx, name, opts)
	case "Service":
		object, err = c.typed.CoreV1().Services(namespace).Get(ctx, name, opts)
	case "PersistentVolumeClaim":
		object, err = c.typed.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, opts)
	case "Pod":
		object, err = c.typed.CoreV1().Pods(namespace).Get(ctx, name, opts)
	case "PodDisruptionBudget":
		object, err = c.typed.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, name, opts)
	case "NetworkPolicy":
		object, err = c.typed.NetworkingV1().NetworkPolicies(namespace).Get(ctx, name, opts)
	case "StatefulSet":
		object, err = c.typed.AppsV1().StatefulSets(namespace).Get(ctx, name, opts)
	default:
		return nil, fmt.Errorf("look for %s %s/%s: not one of the kinds of a cluster", kind, namespace, name)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s %s/%s: %w", kind, namespace, name, err)
	}
	return object, nil
}

// Applied reports whether Quorate has ever applied that object.
func Applied(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == Manager && m.Operation == metav1.ManagedFieldsOperationApply
	})
}

// HasClaims reports whether there is any volume claim that selector selects.
func (c *Client) HasClaims(ctx context.Context, namespace, selector string) (bool, error) {
	claims, err := c.typed.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for volume claims in %s: %w", namespace, err)
	}
	return len(claims.Items) > 0, nil
}

// HasPods reports whether there is any pod that selector selects.
func (c *Client) HasPods(ctx context.Context, namespace, selector string) (bool, error) {
	pods, err := c.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for pods in %s: %w", namespace, err)
	}
	return len(pods.Items) > 0, nil
}
