package kube

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/panics"
)

// Inventory is everything of Quorate's in the namespaces of one pass, as it was listed.
type Inventory struct {
	Leases   []coordinationv1.Lease
	Clusters []v1alpha1.EtcdCluster
	// Unreadable says of custom resources among Clusters, by namespace/name, why they could not be
	// read: the API server lets some through that Go cannot read. Of such a one only the metadata
	// is known, and which source declared it.
	Unreadable   map[string]error
	Services     []corev1.Service
	ConfigMaps   []corev1.ConfigMap
	Secrets      []corev1.Secret
	StatefulSets []appsv1.StatefulSet
	Budgets      []policyv1.PodDisruptionBudget
	Policies     []networkingv1.NetworkPolicy
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
	CronJobs     []batchv1.CronJob
	Jobs         []batchv1.Job
	// Hidden says that Secrets may not be listed; nil if they were. Whoever reads the inventory
	// decides what that means: they are not known to be gone.
	Hidden error
	// HiddenPolicies says the same of NetworkPolicies, which not every account that lets Quorate
	// act has a right to: a cluster need not have one.
	HiddenPolicies error
	// HiddenBackups says the same of CronJobs and Jobs, which are there only where backups are declared.
	HiddenBackups error

	// whole reports whether an object is kept as it is.
	whole func(metav1.Object) bool
}

// pageSize of a LIST.
const pageSize = 500

// List reads every object that selector selects, and all EtcdClusters, of one namespace or, if it
// is empty, of all: one paged LIST per kind. Leases come first: whoever acts between that and the
// rest has changed a lease by then, and taking the lease at the listed version fails. Any read that
// fails fails the whole, but for those that may be forbidden: see Hidden, HiddenPolicies and HiddenBackups.
//
// Of objects that whole does not say yes to, little more is kept than that they are there: see bare.
func (c *Client) List(
	ctx context.Context, namespace, selector string, whole func(metav1.Object) bool,
) (*Inventory, error) {
	return c.list(ctx, namespace, selector, "", whole)
}

// ListCluster reads the same of one cluster: the objects that selector selects, and its EtcdCluster.
func (c *Client) ListCluster(ctx context.Context, namespace, name, selector string) (*Inventory, error) {
	return c.list(ctx, namespace, selector, fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), Whole)
}

// list reads the objects that selector selects, and the EtcdClusters that a field selector does.
func (c *Client) list(
	ctx context.Context, namespace, selector, custom string, whole func(metav1.Object) bool,
) (*Inventory, error) {
	inv := &Inventory{whole: whole}
	opts := metav1.ListOptions{LabelSelector: selector}
	leases := listing(inv.reduce, "Leases", c.typed.CoordinationV1().Leases(namespace).List,
		func(l *coordinationv1.LeaseList) { inv.Leases = append(inv.Leases, l.Items...) })
	if err := leases(ctx, opts); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return panics.Catch(func() error { return c.listClusters(ctx, namespace, custom, inv) }) })
	for _, list := range c.listings(namespace, inv) {
		group.Go(func() error { return panics.Catch(func() error { return list(ctx, opts) }) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return inv, nil
}

// listings are the LISTs of the kinds that carry labels.
func (c *Client) listings(namespace string, inv *Inventory) []lister {
	core := c.typed.CoreV1()
	return []lister{
		listing(inv.reduce, "Services", core.Services(namespace).List,
			func(l *corev1.ServiceList) { inv.Services = append(inv.Services, l.Items...) }),
		listing(inv.reduce, "ConfigMaps", core.ConfigMaps(namespace).List,
			func(l *corev1.ConfigMapList) { inv.ConfigMaps = append(inv.ConfigMaps, l.Items...) }),
		hidden(listing(inv.reduce, "Secrets", core.Secrets(namespace).List,
			func(l *corev1.SecretList) { inv.Secrets = append(inv.Secrets, l.Items...) }), &inv.Hidden),
		listing(inv.reduce, "Pods", core.Pods(namespace).List,
			func(l *corev1.PodList) { inv.Pods = append(inv.Pods, l.Items...) }),
		listing(inv.reduce, "PersistentVolumeClaims", core.PersistentVolumeClaims(namespace).List,
			func(l *corev1.PersistentVolumeClaimList) { inv.Claims = append(inv.Claims, l.Items...) }),
		listing(inv.reduce, "StatefulSets", c.typed.AppsV1().StatefulSets(namespace).List,
			func(l *appsv1.StatefulSetList) { inv.StatefulSets = append(inv.StatefulSets, l.Items...) }),
		listing(inv.reduce, "PodDisruptionBudgets", c.typed.PolicyV1().PodDisruptionBudgets(namespace).List,
			func(l *policyv1.PodDisruptionBudgetList) { inv.Budgets = append(inv.Budgets, l.Items...) }),
		hidden(listing(inv.reduce, "NetworkPolicies", c.typed.NetworkingV1().NetworkPolicies(namespace).List,
			func(l *networkingv1.NetworkPolicyList) { inv.Policies = append(inv.Policies, l.Items...) }),
			&inv.HiddenPolicies),
		hidden(inOrder(
			listing(inv.reduce, "CronJobs", c.typed.BatchV1().CronJobs(namespace).List,
				func(l *batchv1.CronJobList) { inv.CronJobs = append(inv.CronJobs, l.Items...) }),
			listing(inv.reduce, "Jobs", c.typed.BatchV1().Jobs(namespace).List,
				func(l *batchv1.JobList) { inv.Jobs = append(inv.Jobs, l.Items...) })),
			&inv.HiddenBackups),
	}
}

// lister reads all pages of one kind.
type lister func(context.Context, metav1.ListOptions) error

// list is a page of one kind.
type list interface {
	runtime.Object
	metav1.ListInterface
}

// listing makes a lister of a function that reads one page, one that leaves out what is not needed of each object,
// and one that keeps what is on it.
func listing[L list](
	reduce func(runtime.Object) error, name string, page func(context.Context, metav1.ListOptions) (L, error),
	keep func(L),
) lister {
	return func(ctx context.Context, opts metav1.ListOptions) error {
		opts.Limit = pageSize
		for {
			l, err := page(ctx, opts)
			if err != nil {
				return fmt.Errorf("list %s: %w", name, err)
			}
			if err := meta.EachListItem(l, reduce); err != nil {
				return fmt.Errorf("list %s: %w", name, err)
			}
			keep(l)
			if opts.Continue = l.GetContinue(); opts.Continue == "" {
				return nil
			}
		}
	}
}

// inOrder reads one kind after the other, until one cannot be read.
func inOrder(lists ...lister) lister {
	return func(ctx context.Context, opts metav1.ListOptions) error {
		for _, list := range lists {
			if err := list(ctx, opts); err != nil {
				return err
			}
		}
		return nil
	}
}

// hidden notes that a kind may not be listed.
func hidden(list lister, why *error) lister {
	return func(ctx context.Context, opts metav1.ListOptions) error {
		err := list(ctx, opts)
		if apierrors.IsForbidden(err) {
			*why, err = err, nil
		}
		return err
	}
}

// ErrNoCRD says that the API server does not know EtcdClusters.
var ErrNoCRD = fmt.Errorf(
	"the API server does not know %s: install the CustomResourceDefinition with \"quorate install\"",
	v1alpha1.Resource.GroupResource())

// NeedsSetup reports whether an error is of the kind that trying again does not overcome.
func NeedsSetup(err error) bool {
	return errors.Is(err, ErrNoCRD) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

func (c *Client) listClusters(ctx context.Context, namespace, selector string, inv *Inventory) error {
	var items []unstructured.Unstructured
	all := listing(inv.reduce, "EtcdClusters", c.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).List,
		func(l *unstructured.UnstructuredList) { items = append(items, l.Items...) })
	err := all(ctx, metav1.ListOptions{FieldSelector: selector})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return ErrNoCRD
	}
	inv.Clusters, inv.Unreadable = make([]v1alpha1.EtcdCluster, len(items)), map[string]error{}
	for i, item := range items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &inv.Clusters[i]); err != nil {
			inv.Clusters[i] = unread(item)
			inv.Unreadable[item.GetNamespace()+"/"+item.GetName()] = fmt.Errorf(
				"read EtcdCluster %s/%s, which has to be corrected: %w", item.GetNamespace(), item.GetName(), err)
		}
	}
	return err
}

// unread is what can be known of a custom resource that cannot be read as one.
func unread(item unstructured.Unstructured) v1alpha1.EtcdCluster {
	var c v1alpha1.EtcdCluster
	c.Namespace, c.Name, c.UID, c.ResourceVersion, c.Generation = item.GetNamespace(), item.GetName(), item.GetUID(),
		item.GetResourceVersion(), item.GetGeneration()
	c.Labels, c.Annotations, c.DeletionTimestamp, c.OwnerReferences = item.GetLabels(), item.GetAnnotations(),
		item.GetDeletionTimestamp(), item.GetOwnerReferences()
	c.Status.DeclaredSource, _, _ = unstructured.NestedString(item.Object, "status", "declaredSource")
	c.Status.DeclaredRevision, _, _ = unstructured.NestedString(item.Object, "status", "declaredRevision")
	c.Status.SourceRevision, _, _ = unstructured.NestedString(item.Object, "status", "sourceRevision")
	return c
}
