package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/panics"
)

// Object is one of Quorate's objects, as listed.
type Object interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// Taker receives listed objects one by one as pages arrive, concurrently from several goroutines.
type Taker interface {
	// Take receives an object with labels.
	Take(object Object) error
	// TakeCustom receives a custom resource, and the error if it could not be decoded, because the API server accepts
	// resources that Go cannot decode. Only the metadata and the declaring source of such a resource are known.
	TakeCustom(custom *v1alpha1.EtcdCluster, unreadable error)
}

// Hidden contains the errors for kinds that may not be listed, or nil for kinds that were listed. Hidden objects must
// not be treated as deleted.
type Hidden struct {
	Secrets error
	// Policies is for NetworkPolicies, which are optional, so an account that runs Quorate may lack the rights to them.
	Policies error
	// Backups is for CronJobs and Jobs, which exist only if backups are declared.
	Backups error
}

// pageSize is the page size of a LIST.
const pageSize = 500

// kindsAtOnce is the maximum number of kinds listed in parallel. It is low because a page takes many times the memory
// of the data that is kept.
const kindsAtOnce = 3

// List reads all objects that selector selects, and all EtcdClusters, in one namespace or, if namespace is empty, in
// all namespaces, with one paged LIST per kind. It lists leases first: if another pass acts after that, it has changed
// a lease, and taking the lease at the listed version fails. List fails if any read fails, except for kinds that may be
// forbidden.
func (c *Client) List(ctx context.Context, namespace, selector string, taker Taker) (Hidden, error) {
	return c.list(ctx, namespace, selector, "", taker)
}

// ListCluster is like List, but for one cluster: it reads the objects that selector selects, and the cluster's
// EtcdCluster.
func (c *Client) ListCluster(ctx context.Context, namespace, name, selector string, taker Taker) (Hidden, error) {
	return c.list(ctx, namespace, selector, fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), taker)
}

// list reads the objects that selector selects, and the EtcdClusters that the field selector custom selects.
func (c *Client) list(ctx context.Context, namespace, selector, custom string, taker Taker) (h Hidden, err error) {
	opts := metav1.ListOptions{LabelSelector: selector}
	leases := listing("Leases", c.typed.CoordinationV1().Leases(namespace).List, takes(taker))
	if err := leases(ctx, opts); err != nil {
		return Hidden{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	if custom == "" {
		group.SetLimit(kindsAtOnce)
	}
	group.Go(func() error {
		return panics.Catch(func() error { return c.listClusters(ctx, namespace, custom, taker) })
	})
	for _, list := range c.listings(namespace, takes(taker), &h) {
		group.Go(func() error { return panics.Catch(func() error { return list(ctx, opts) }) })
	}
	if err := group.Wait(); err != nil {
		return Hidden{}, err
	}
	return h, nil
}

// listings returns a lister for each kind whose objects have labels.
func (c *Client) listings(namespace string, take func(runtime.Object) error, h *Hidden) []lister {
	core, batch := c.typed.CoreV1(), c.typed.BatchV1()
	return []lister{
		listing("Services", core.Services(namespace).List, take),
		listing("ConfigMaps", core.ConfigMaps(namespace).List, take),
		hidden(listing("Secrets", core.Secrets(namespace).List, take), &h.Secrets),
		listing("Pods", core.Pods(namespace).List, take),
		listing("PersistentVolumeClaims", core.PersistentVolumeClaims(namespace).List, take),
		listing("StatefulSets", c.typed.AppsV1().StatefulSets(namespace).List, take),
		listing("PodDisruptionBudgets", c.typed.PolicyV1().PodDisruptionBudgets(namespace).List, take),
		hidden(listing("NetworkPolicies", c.typed.NetworkingV1().NetworkPolicies(namespace).List, take), &h.Policies),
		hidden(inOrder(
			listing("CronJobs", batch.CronJobs(namespace).List, take),
			listing("Jobs", batch.Jobs(namespace).List, take)), &h.Backups),
	}
}

// takes passes a listed object to taker as soon as its page arrives, after removing the unused parts.
func takes(taker Taker) func(runtime.Object) error {
	return func(item runtime.Object) error {
		object, is := item.(Object)
		if !is {
			return fmt.Errorf("clusters do not have objects of type %T", item)
		}
		reduce(object)
		return taker.Take(object)
	}
}

// gathers appends each listed object to a list, without the managed fields of other managers.
func gathers[P interface {
	*T
	metav1.Object
}, T any](list *[]T) func(runtime.Object) error {
	return func(item runtime.Object) error {
		object, is := item.(P)
		if !is {
			return fmt.Errorf("a %T was not requested", item)
		}
		forgetOthers(object)
		*list = append(*list, *object)
		return nil
	}
}

// lister reads all pages of one kind.
type lister func(context.Context, metav1.ListOptions) error

// list is a page of one kind.
type list interface {
	runtime.Object
	metav1.ListInterface
}

// listing returns a lister that reads pages with page and passes each object to take. If a page is too long, it
// requests smaller pages from then on.
func listing[L list](
	name string, page func(context.Context, metav1.ListOptions) (L, error), take func(runtime.Object) error,
) lister {
	return func(ctx context.Context, opts metav1.ListOptions) error {
		opts.Limit = pageSize
		for {
			l, err := page(ctx, opts)
			if smaller := smallerPage(opts.Limit, err); smaller > 0 {
				opts.Limit = smaller
				continue
			}
			if err != nil {
				return fmt.Errorf("list %s: %w", name, withoutQuery(err))
			}
			if err := meta.EachListItem(l, take); err != nil {
				return fmt.Errorf("list %s: %w", name, err)
			}
			if opts.Continue = l.GetContinue(); opts.Continue == "" {
				return nil
			}
		}
	}
}

// withoutQuery returns an error without the requested URL, because the message already names the API server, and an
// encoded selector obscures the cause.
func withoutQuery(err error) error {
	if of, is := errors.AsType[*url.Error](err); is {
		return of.Err
	}
	return err
}

// inOrder reads one kind after the other, and stops at the first error.
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

// hidden records that a kind may not be listed.
func hidden(list lister, why *error) lister {
	return func(ctx context.Context, opts metav1.ListOptions) error {
		err := list(ctx, opts)
		if apierrors.IsForbidden(err) {
			*why, err = err, nil
		}
		return err
	}
}

// ErrNoCRD is returned if the API server does not know EtcdClusters.
var ErrNoCRD = fmt.Errorf(
	"the API server does not know %s: install the CustomResourceDefinition with \"quorate install\"",
	v1alpha1.Resource.GroupResource())

// NeedsSetup reports whether an error cannot be resolved by retrying.
func NeedsSetup(err error) bool {
	return errors.Is(err, ErrNoCRD) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

func (c *Client) listClusters(ctx context.Context, namespace, selector string, taker Taker) error {
	all := listing("EtcdClusters", c.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).List,
		func(item runtime.Object) error {
			object, is := item.(*unstructured.Unstructured)
			if !is {
				return fmt.Errorf("a %T is not an EtcdCluster", item)
			}
			taker.TakeCustom(readCluster(object))
			return nil
		})
	err := all(ctx, metav1.ListOptions{FieldSelector: selector})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return ErrNoCRD
	}
	return err
}

func readCluster(item *unstructured.Unstructured) (custom *v1alpha1.EtcdCluster, unreadable error) {
	forgetOthers(item)
	custom, err := decodeCluster(item)
	if err != nil {
		return unread(item), fmt.Errorf("EtcdCluster %s/%s is invalid and must be corrected: %w",
			item.GetNamespace(), item.GetName(), err)
	}
	return custom, nil
}

// decodeCluster decodes a custom resource. For quantities that would take minutes to decode, which an older CRD may
// have accepted, it returns an error, so that other clusters do not have to wait.
func decodeCluster(item *unstructured.Unstructured) (*v1alpha1.EtcdCluster, error) {
	if err := schema.CheckQuantities(item.Object); err != nil {
		return nil, err
	}
	custom := &v1alpha1.EtcdCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, custom); err != nil {
		return nil, err
	}
	return custom, nil
}

// unread returns the known parts of a custom resource that cannot be decoded.
func unread(item *unstructured.Unstructured) *v1alpha1.EtcdCluster {
	c := &v1alpha1.EtcdCluster{}
	c.Namespace, c.Name, c.UID, c.ResourceVersion, c.Generation = item.GetNamespace(), item.GetName(), item.GetUID(),
		item.GetResourceVersion(), item.GetGeneration()
	c.Labels, c.Annotations, c.DeletionTimestamp, c.OwnerReferences = item.GetLabels(), item.GetAnnotations(),
		item.GetDeletionTimestamp(), item.GetOwnerReferences()
	c.Status.DeclaredSource, _, _ = unstructured.NestedString(item.Object, "status", "declaredSource")
	c.Status.DeclaredRevision, _, _ = unstructured.NestedString(item.Object, "status", "declaredRevision")
	c.Status.SourceRevision, _, _ = unstructured.NestedString(item.Object, "status", "sourceRevision")
	return c
}
