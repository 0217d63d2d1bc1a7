package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typednetworkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	typedpolicyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// kinds are the kinds of a cluster's objects.
var kinds = map[string]access{
	"ConfigMap":             accessTo(groups.CoreV1, typedcorev1.CoreV1Interface.ConfigMaps),
	"Secret":                accessTo(groups.CoreV1, typedcorev1.CoreV1Interface.Secrets),
	"Service":               accessTo(groups.CoreV1, typedcorev1.CoreV1Interface.Services),
	"Pod":                   accessTo(groups.CoreV1, typedcorev1.CoreV1Interface.Pods),
	"PersistentVolumeClaim": accessTo(groups.CoreV1, typedcorev1.CoreV1Interface.PersistentVolumeClaims),
	"PodDisruptionBudget": accessTo(groups.PolicyV1,
		typedpolicyv1.PolicyV1Interface.PodDisruptionBudgets),
	"NetworkPolicy": accessTo(groups.NetworkingV1,
		typednetworkingv1.NetworkingV1Interface.NetworkPolicies),
	"CronJob":     accessTo(groups.BatchV1, typedbatchv1.BatchV1Interface.CronJobs),
	"Job":         accessTo(groups.BatchV1, typedbatchv1.BatchV1Interface.Jobs),
	"StatefulSet": accessTo(groups.AppsV1, typedappsv1.AppsV1Interface.StatefulSets),
}

// access contains functions that read, apply and delete objects of one kind. Functions that take an object return mine,
// which reports whether the object is of this kind.
type access struct {
	get    func(ctx context.Context, c groups, namespace, name string) (metav1.Object, error)
	remove func(ctx context.Context, c groups, namespace, name string, opts metav1.DeleteOptions) error
	apply  func(ctx context.Context, c groups, object any, opts metav1.ApplyOptions) (live metav1.Object, mine bool,
		err error)
	over  func(object any, uid types.UID, version string) (mine bool)
	owned func(live any) (config any, mine bool, err error)
}

// requests are the requests for one kind in a namespace. Live objects have type T, and apply configurations
// type A.
type requests[T, A any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Apply(ctx context.Context, object A, opts metav1.ApplyOptions) (T, error)
}

// live is an object as the API server returns it.
type live interface {
	metav1.Object
	runtime.Object
}

// applied is an apply configuration. A is a pointer to C.
type applied[A, C any] interface {
	*C
	GetNamespace() *string
	WithKind(kind string) A
	WithAPIVersion(version string) A
	WithNamespace(namespace string) A
	WithName(name string) A
	WithUID(uid types.UID) A
	WithResourceVersion(version string) A
}

func accessTo[G any, R requests[T, A], T live, A applied[A, C], C any](
	group func(groups) G, in func(G, string) R,
) access {
	return access{
		get: func(ctx context.Context, c groups, namespace, name string) (metav1.Object, error) {
			return in(group(c), namespace).Get(ctx, name, metav1.GetOptions{})
		},
		remove: func(ctx context.Context, c groups, namespace, name string,
			opts metav1.DeleteOptions) error {
			return in(group(c), namespace).Delete(ctx, name, opts)
		},
		apply: func(ctx context.Context, c groups, object any, opts metav1.ApplyOptions) (metav1.Object, bool, error) {
			o, mine := object.(A)
			if !mine {
				return nil, false, nil
			}
			live, err := in(group(c), *o.GetNamespace()).Apply(ctx, o, opts)
			return live, true, err
		},
		over: func(object any, uid types.UID, version string) bool {
			o, mine := object.(A)
			if mine && uid != "" {
				o.WithUID(uid)
			}
			if mine {
				o.WithResourceVersion(version)
			}
			return mine
		},
		owned: func(live any) (any, bool, error) {
			o, mine := live.(T)
			if !mine {
				return nil, false, nil
			}
			config := A(new(C))
			return config, true, extract(o, config)
		},
	}
}

// extract sets an apply configuration to the fields of a live object that Quorate owns.
func extract[T live, A applied[A, C], C any](object T, config A) error {
	m := modelOf(object)
	if m == nil {
		return fmt.Errorf("read Quorate's fields of a %T: its type is not in types.yaml", object)
	}
	of := typed.ParseableType{Schema: m.schema, TypeRef: m.root}
	if err := managedfields.ExtractInto(object, of, Manager, config, ""); err != nil {
		return err
	}
	config.WithKind(m.kind).WithAPIVersion(m.apiVersion).WithNamespace(object.GetNamespace()).WithName(object.GetName())
	return nil
}

// Apply applies an object given as an apply configuration. Quorate takes ownership of its fields from all other
// managers. If the configuration contains a resourceVersion, the API server rejects it unless that is the object's
// current version.
func (c *Client) Apply(ctx context.Context, object any) (metav1.Object, error) {
	for _, kind := range kinds {
		if live, mine, err := kind.apply(ctx, c.typed, object,
			metav1.ApplyOptions{FieldManager: Manager, Force: true}); mine {
			return live, err
		}
	}
	return nil, fmt.Errorf("apply %T: clusters do not have objects of this type", object)
}

// Owned returns the fields of a live object that Quorate owns, as an apply configuration. It derives them from the
// managed fields, without a request.
func Owned(live any) (any, error) {
	for _, kind := range kinds {
		if config, mine, err := kind.owned(live); mine {
			return config, err
		}
	}
	return nil, fmt.Errorf("read Quorate's fields of a %T: clusters do not have objects of this type", live)
}
