package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// lockHolder returns the name of another pass that holds the lease, or "".
func (l *Live) lockHolder(lease *coordinationv1.Lease, now time.Time) string {
	identity := identityIn(lease)
	if identity == "" || identity == l.holder.String() || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	if expired(lease, now) {
		return ""
	}
	since := lease.Spec.RenewTime
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime
	}
	return fmt.Sprintf("%s has held the lease since %s", parseHolder(identity).Words(),
		since.UTC().Format(time.RFC3339))
}

// MaxLeaseDuration is the maximum time that a lease is valid without renewal, regardless of the duration in the lease.
const MaxLeaseDuration = 10 * time.Minute

// expired reports whether another pass may take a lease. Anyone who may write Leases in the namespace can write this
// lease, so neither a long duration nor a renewal time in the future can lock a cluster. A lease expires at most
// MaxLeaseDuration after its renewal time. It also counts as expired while its renewal time is further in the future
// than the allowed clock skew.
//
// Two passes do not act at the same time even if a lease counts as expired too early, for example because the API
// server's clock was set back. A pass takes a lease only at the resourceVersion that it observed, so only one of
// several passes succeeds. The next renewal by the previous holder then fails with a conflict. The holder renews
// before each write, unless it has done so within a quarter of its duration by the API server's clock (young). As with
// every lease, the holder might not notice if that clock jumps within this quarter. Its writes are then still
// conditional on the observed versions, and its etcd changes on the observed IDs. With a longer duration than
// MaxLeaseDuration, a holder could still act for minutes after other passes consider its lease expired, so
// --lease-duration does not accept longer durations.
func expired(lease *coordinationv1.Lease, now time.Time) bool {
	renewed := lease.Spec.RenewTime.Time
	duration := min(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second, MaxLeaseDuration)
	return decide.YetToCome(renewed, now) || now.After(renewed.Add(duration))
}

// identityIn returns the current or last holder of a lease, or "" if the holder or the renewal time is missing.
func identityIn(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leaseHold is this process's hold on a cluster's lease while the process acts on the cluster.
type leaseHold struct {
	live *Live
	want metav1.ObjectMeta

	mu    sync.Mutex
	lease *coordinationv1.Lease // nil if the lease does not exist yet
}

// hold takes the cluster's lease before anything is written, and renews the lease until release is called. It fails if
// another pass has acted since the cluster was observed. As soon as the lease is known to be lost, the returned
// context is canceled with ErrLocked as its cause.
func (c *cluster) hold(ctx context.Context) (held context.Context, release func(), err error) {
	k := c.target.Key()
	t := &leaseHold{live: c.live, lease: c.own.Lease,
		want: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Labels: objects.Labels(k.Name)}}
	if c.own.Custom != nil {
		t.want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.own.Custom,
			v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
	}
	if err := t.renew(ctx); err != nil {
		return nil, nil, err
	}
	c.lease = t
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := panics.Catch(func() error { t.keep(ctx, cancel); return nil }); err != nil {
			cancel(err) // the lease is no longer renewed
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
		c.own.Lease = t.lease
	}, nil
}

// keep renews the lease until ctx is done, and calls cancel once the lease is lost.
func (t *leaseHold) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(max(t.live.options.LeaseDuration/3, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := t.renew(ctx); errors.Is(err, reconcile.ErrLocked) {
			cancel(err)
			return
		}
	}
}

// renew writes the lease, unless it was just renewed. A conflict with the last observed version means that another pass
// has taken the lease. After any other error, renewal may be retried until the lease expires.
func (t *leaseHold) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, client := t.live, t.live.at(t.want.Namespace)
	// Lease times are based on the API server's clock, which is the same for all holders. If this machine's clock were
	// set back, an old lease would look recent.
	now, err := client.Now()
	if err == nil && t.young(now) {
		return nil
	}
	if err != nil {
		now, err = client.Clock(ctx)
	}
	if err != nil {
		return err
	}
	taken, err := client.TakeLease(ctx, t.want, t.lease, l.holder.String(), l.options.LeaseDuration, now)
	if errors.Is(err, kube.ErrLeaseTaken) {
		return fmt.Errorf("%w: %w", reconcile.ErrLocked, err)
	}
	if err != nil {
		return err
	}
	t.lease = taken
	l.mu.Lock()
	maps.DeleteFunc(l.held, func(_ inventory.Key, lease *coordinationv1.Lease) bool {
		return expired(lease, now)
	})
	l.held[inventory.Key{Namespace: taken.Namespace, Name: taken.Name}] = taken
	l.mu.Unlock()
	return nil
}

// young reports whether, as last observed, this process held the lease and had just renewed it.
func (t *leaseHold) young(now time.Time) bool {
	if identityIn(t.lease) != t.live.holder.String() {
		return false
	}
	age := now.Sub(t.lease.Spec.RenewTime.Time)
	return age >= 0 && age < t.live.options.LeaseDuration/4
}

// stillOurs returns nil if a write is allowed: the lease is held, and remains valid for long enough. It is called
// before every write, so that a process that was paused, or cut off from the API server, stops writing.
func (c *cluster) stillOurs(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.lease == nil {
		return errors.New("cannot write without holding the lease")
	}
	err := c.lease.renew(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // keep has found that the lease is lost, which cancels renew's request
	}
	return err
}
