package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// lockHolder names the other pass that holds a lease; empty if none does.
func (l *Live) lockHolder(lease *coordinationv1.Lease, now time.Time) string {
	if lease == nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	identity := *lease.Spec.HolderIdentity
	if identity == "" || identity == l.holder.String() {
		return ""
	}
	expires := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
	other := parseHolder(identity)
	if now.After(expires) || other.gone() {
		return ""
	}
	since := lease.Spec.RenewTime
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime
	}
	return fmt.Sprintf("%s holds the lease since %s", other.Words(), since.UTC().Format(time.RFC3339))
}

// lock takes the lease of the cluster before anything is written, if this process does not hold it for a good while yet. It
// succeeds only if nobody has acted since the cluster was observed.
func (c *cluster) lock(ctx context.Context) error {
	l, k, now := c.live, c.target.key(), time.Now()
	l.mu.Lock()
	held := l.held[k]
	l.mu.Unlock()
	if held != nil && now.Sub(held.Spec.RenewTime.Time) < l.options.LeaseDuration/3 {
		return nil
	}
	want := metav1.ObjectMeta{Namespace: k.namespace, Name: k.name, Labels: objects.Labels(k.name)}
	if c.own.custom != nil {
		want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.own.custom, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
	}
	taken, err := l.kube.TakeLease(ctx, want, c.own.lease, l.holder.String(), l.options.LeaseDuration, now)
	if errors.Is(err, kube.ErrLeaseTaken) {
		return fmt.Errorf("%w: %w", reconcile.ErrLocked, err)
	}
	if err != nil {
		return err
	}
	c.own.lease = taken
	l.mu.Lock()
	l.held[k] = taken
	l.mu.Unlock()
	return nil
}
