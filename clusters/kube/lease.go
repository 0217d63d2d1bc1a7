package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrLeaseTaken is returned if another pass has taken the lease since it was read.
var ErrLeaseTaken = errors.New("another pass has taken the lease")

// TakeLease takes or renews a lease for holder. seen is the lease as the pass read it before it read anything else, or
// nil if it did not exist. If the lease has changed since, another pass may have acted, and TakeLease returns
// ErrLeaseTaken. Leases are never deleted, because a lease that is deleted and recreated could not be distinguished
// from a new lease. want specifies the name, namespace, labels and owners.
func (c *Client) TakeLease(
	ctx context.Context, want metav1.ObjectMeta, seen *coordinationv1.Lease, holder string, duration time.Duration,
	now time.Time,
) (*coordinationv1.Lease, error) {
	seconds := int32(max(1, duration/time.Second))
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       &holder,
		LeaseDurationSeconds: &seconds,
		AcquireTime:          &metav1.MicroTime{Time: now},
		RenewTime:            &metav1.MicroTime{Time: now},
	}
	leases := c.typed.CoordinationV1().Leases(want.Namespace)
	var taken *coordinationv1.Lease
	var err error
	if seen == nil {
		taken, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: want, Spec: spec},
			metav1.CreateOptions{FieldManager: Manager})
	} else {
		next := seen.DeepCopy()
		next.Labels, next.OwnerReferences = want.Labels, want.OwnerReferences
		if seen.Spec.HolderIdentity != nil && *seen.Spec.HolderIdentity == holder {
			spec.AcquireTime = seen.Spec.AcquireTime
		}
		next.Spec = spec
		taken, err = leases.Update(ctx, next, metav1.UpdateOptions{FieldManager: Manager})
	}
	deleted := seen != nil && apierrors.IsNotFound(err)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || deleted {
		return nil, ErrLeaseTaken
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("take the lease %s/%s: %w; the namespace must exist before its clusters", want.Namespace,
			want.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease %s/%s: %w", want.Namespace, want.Name, err)
	}
	return taken, nil
}

// Lease returns the lease with the given name, regardless of who created it, or nil if it does not exist.
func (c *Client) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	list, err := c.typed.CoordinationV1().Leases(namespace).
		List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("get Lease %s/%s: %w", namespace, name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// ReleaseLease releases a lease, unless it has been taken by another holder.
func (c *Client) ReleaseLease(ctx context.Context, held *coordinationv1.Lease) error {
	next := held.DeepCopy()
	nobody := ""
	next.Spec.HolderIdentity = &nobody
	_, err := c.typed.CoordinationV1().Leases(held.Namespace).
		Update(ctx, next, metav1.UpdateOptions{FieldManager: Manager})
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("release the lease %s/%s: %w", held.Namespace, held.Name, err)
}
