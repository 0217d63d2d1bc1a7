package kube

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Inventory is everything of Quorate's in the namespaces of one pass, as it was listed.
type Inventory struct {
	Leases       []coordinationv1.Lease
	Clusters     []v1alpha1.EtcdCluster
	Services     []corev1.Service
	ConfigMaps   []corev1.ConfigMap
	Secrets      []corev1.Secret
	StatefulSets []appsv1.StatefulSet
	Budgets      []policyv1.PodDisruptionBudget
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
}

// pageSize of a LIST.
const pageSize = 500

// List reads every object that selector selects, and all EtcdClusters, of one namespace or, if it is empty, of all:
// one paged LIST per kind. Leases come first: whoever acts between that and the rest has changed a lease by then, and
// taking the lease at the listed version fails. Any read that fails fails the whole.
func (c *Client) List(ctx context.Context, namespace, selector string) (*Inventory, error) {
	inv := &Inventory{}
	opts := metav1.ListOptions{LabelSelector: selector}
	if err := list(ctx, "Leases", opts, c.typed.CoordinationV1().Leases(namespace).List, func(l *coordinationv1.LeaseList) {
		inv.Leases = append(inv.Leases, l.Items...)
	}); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.listClusters(ctx, namespace, inv) })
	group.Go(func() error {
		return list(ctx, "Services", opts, c.typed.CoreV1().Services(namespace).List, func(l *corev1.ServiceList) {
			inv.Services = append(inv.Services, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "ConfigMaps", opts, c.typed.CoreV1().ConfigMaps(namespace).List, func(l *corev1.ConfigMapList) {
			inv.ConfigMaps = append(inv.ConfigMaps, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "Secrets", opts, c.typed.CoreV1().Secrets(namespace).List, func(l *corev1.SecretList) {
			inv.Secrets = append(inv.Secrets, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "StatefulSets", opts, c.typed.AppsV1().StatefulSets(namespace).List, func(l *appsv1.StatefulSetList) {
			inv.StatefulSets = append(inv.StatefulSets, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "PodDisruptionBudgets", opts, c.typed.PolicyV1().PodDisruptionBudgets(namespace).List, func(l *policyv1.PodDisruptionBudgetList) {
			inv.Budgets = append(inv.Budgets, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "Pods", opts, c.typed.CoreV1().Pods(namespace).List, func(l *corev1.PodList) {
			inv.Pods = append(inv.Pods, l.Items...)
		})
	})
	group.Go(func() error {
		return list(ctx, "PersistentVolumeClaims", opts, c.typed.CoreV1().PersistentVolumeClaims(namespace).List, func(l *corev1.PersistentVolumeClaimList) {
			inv.Claims = append(inv.Claims, l.Items...)
		})
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return inv, nil
}

// list reads all pages of one kind.
func list[L metav1.ListInterface](ctx context.Context, kind string, opts metav1.ListOptions,
	page func(context.Context, metav1.ListOptions) (L, error), add func(L)) error {
	opts.Limit = pageSize
	for {
		l, err := page(ctx, opts)
		if err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		add(l)
		if opts.Continue = l.GetContinue(); opts.Continue == "" {
			return nil
		}
	}
}

// ErrNoCRD says that the API server does not know EtcdClusters.
var ErrNoCRD = fmt.Errorf("the API server does not know %s: install the CustomResourceDefinition with \"quorate install\"", v1alpha1.Resource.GroupResource())

// NeedsSetup reports whether an error is of the kind that trying again does not overcome.
func NeedsSetup(err error) bool {
	return errors.Is(err, ErrNoCRD) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

func (c *Client) listClusters(ctx context.Context, namespace string, inv *Inventory) error {
	err := list(ctx, "EtcdClusters", metav1.ListOptions{}, c.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).List,
		func(l *unstructured.UnstructuredList) {
			for _, item := range l.Items {
				cluster := v1alpha1.EtcdCluster{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &cluster); err == nil {
					inv.Clusters = append(inv.Clusters, cluster)
				}
			}
		})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return ErrNoCRD
	}
	return err
}
