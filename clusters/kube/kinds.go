package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/client-go/kubernetes"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typednetworkingv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	typedpolicyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
)

// kinds are those of a cluster's objects.
var kinds = map[string]access{
	"ConfigMap": accessTo(kubernetes.Interface.CoreV1, typedcorev1.CoreV1Interface.ConfigMaps,
		applycorev1.ExtractConfigMap),
	"Secret": accessTo(kubernetes.Interface.CoreV1, typedcorev1.CoreV1Interface.Secrets,
		applycorev1.ExtractSecret),
	"Service": accessTo(kubernetes.Interface.CoreV1, typedcorev1.CoreV1Interface.Services,
		applycorev1.ExtractService),
	"Pod": accessTo(kubernetes.Interface.CoreV1, typedcorev1.CoreV1Interface.Pods,
		applycorev1.ExtractPod),
	"PersistentVolumeClaim": accessTo(kubernetes.Interface.CoreV1, typedcorev1.CoreV1Interface.PersistentVolumeClaims,
		applycorev1.ExtractPersistentVolumeClaim),
	"PodDisruptionBudget": accessTo(kubernetes.Interface.PolicyV1,
		typedpolicyv1.PolicyV1Interface.PodDisruptionBudgets, applypolicyv1.ExtractPodDisruptionBudget),
	"NetworkPolicy": accessTo(kubernetes.Interface.NetworkingV1,
		typednetworkingv1.NetworkingV1Interface.NetworkPolicies, applynetworkingv1.ExtractNetworkPolicy),
	"CronJob": accessTo(kubernetes.Interface.BatchV1, typedbatchv1.BatchV1Interface.CronJobs,
		applybatchv1.ExtractCronJob),
	"Job": accessTo(kubernetes.Interface.BatchV1, typedbatchv1.BatchV1Interface.Jobs, applybatchv1.ExtractJob),
	"StatefulSet": accessTo(kubernetes.Interface.AppsV1, typedappsv1.AppsV1Interface.StatefulSets,
		applyappsv1.ExtractStatefulSet),
}

// access is how objects of one kind are read, applied and deleted. Where an object is given,
// applied and owned say whether it is of this kind.
type access struct {
	get    func(ctx context.Context, c kubernetes.Interface, namespace, name string) (metav1.Object, error)
	remove func(ctx context.Context, c kubernetes.Interface, namespace, name string, opts metav1.DeleteOptions) error
	apply  func(ctx context.Context, c kubernetes.Interface, object any, opts metav1.ApplyOptions) (mine bool,
		err error)
	over  func(object any, uid types.UID, version string) (mine bool)
	owned func(live any) (config any, mine bool, err error)
}

// requests are those to one kind of objects in a namespace, live as T, and applied as A.
type requests[T, A any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Apply(ctx context.Context, object A, opts metav1.ApplyOptions) (T, error)
}

// applied is an apply configuration.
type applied[A any] interface {
	GetNamespace() *string
	WithUID(uid types.UID) A
	WithResourceVersion(version string) A
}

func accessTo[G any, R requests[T, A], T metav1.Object, A applied[A]](
	group func(kubernetes.Interface) G, in func(G, string) R, extract func(T, string) (A, error),
) access {
	return access{
		get: func(ctx context.Context, c kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return in(group(c), namespace).Get(ctx, name, metav1.GetOptions{})
		},
		remove: func(ctx context.Context, c kubernetes.Interface, namespace, name string,
			opts metav1.DeleteOptions) error {
			return in(group(c), namespace).Delete(ctx, name, opts)
		},
		apply: func(ctx context.Context, c kubernetes.Interface, object any, opts metav1.ApplyOptions) (bool, error) {
			o, mine := object.(A)
			if !mine {
				return false, nil
			}
			_, err := in(group(c), *o.GetNamespace()).Apply(ctx, o, opts)
			return true, err
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
			config, err := extract(o, Manager)
			return config, true, err
		},
	}
}

// Apply applies one object as its apply configuration states it. Of the fields that it states,
// Quorate takes ownership, whoever had it. Stating a resourceVersion makes the API server refuse if
// the object has changed since.
func (c *Client) Apply(ctx context.Context, object any) error {
	for _, kind := range kinds {
		if mine, err := kind.apply(ctx, c.typed, object,
			metav1.ApplyOptions{FieldManager: Manager, Force: true}); mine {
			return err
		}
	}
	return fmt.Errorf("apply %T: not one of the kinds of a cluster", object)
}

// Owned returns what Quorate owns of a live object, as an apply configuration. It needs no request:
// managedFields tells.
func Owned(live any) (any, error) {
	for _, kind := range kinds {
		if config, mine, err := kind.owned(live); mine {
			return config, err
		}
	}
	return nil, fmt.Errorf("read what Quorate owns of a %T: not one of the kinds of a cluster", live)
}
