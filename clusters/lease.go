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
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/panics"
)

// lockHolder names the other pass that holds a lease; empty if none does.
func (l *Live) lockHolder(lease *coordinationv1.Lease, now time.Time) string {
	identity := identityIn(lease)
	if identity == "" || identity == l.holder.String() || lease.Spec.LeaseDurationSeconds == nil {
		return ""
	}
	other := parseHolder(identity)
	if now.After(runsOut(lease)) || other.gone() {
		return ""
	}
	since := lease.Spec.RenewTime
	if lease.Spec.AcquireTime != nil {
		since = lease.Spec.AcquireTime
	}
	return fmt.Sprintf("%s holds the lease since %s", other.Words(), since.UTC().Format(time.RFC3339))
}

// runsOut is when a lease is free unless it is renewed.
func runsOut(lease *coordinationv1.Lease) time.Time {
	return lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
}

// identityIn is who holds a lease, or held it last; empty if nobody does, or it does not say since
// when.
func identityIn(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// tenure is this process' hold on the lease of a cluster while it acts.
type tenure struct {
	live *Live
	want metav1.ObjectMeta

	mu    sync.Mutex
	lease *coordinationv1.Lease // nil: there is none yet
}

// hold takes the lease of the cluster before anything is written, which succeeds only if nobody has
// acted since the cluster was observed, and renews it until release is called. The context that it
// returns ends, with ErrLocked as its cause, as soon as the lease is known to be lost.
func (c *cluster) hold(ctx context.Context) (held context.Context, release func(), err error) {
	k := c.target.Key()
	t := &tenure{live: c.live, lease: c.own.Lease,
		want: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Labels: objects.Labels(k.Name)}}
	if c.own.Custom != nil {
		t.want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.own.Custom,
			v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
	}
	if err := t.renew(ctx); err != nil {
		return nil, nil, err
	}
	c.tenure = t
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := panics.Catch(func() error { t.keep(ctx, cancel); return nil }); err != nil {
			cancel(err) // nobody renews the lease any more
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
		c.own.Lease = t.lease
	}, nil
}

// keep renews the lease until ctx is done, and cancels it once the lease is lost.
func (t *tenure) keep(ctx context.Context, cancel context.CancelCauseFunc) {
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

// renew takes the lease over the version that was seen last, unless it was renewed a moment ago.
// Another version means that somebody else has taken it. A renewal that fails otherwise may be
// tried again as long as the lease has not run out.
func (t *tenure) renew(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, client := t.live, t.live.at(t.want.Namespace)
	// Leases are stamped and read by the API server's clock, which is the same for all who take them. This machine's
	// may be set back, which would make an old lease young.
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
		return now.After(runsOut(lease))
	})
	l.held[inventory.Key{Namespace: taken.Namespace, Name: taken.Name}] = taken
	l.mu.Unlock()
	return nil
}

// young reports whether the lease was this process' own when it was seen last, and was renewed a moment ago.
func (t *tenure) young(now time.Time) bool {
	if identityIn(t.lease) != t.live.holder.String() {
		return false
	}
	age := now.Sub(t.lease.Spec.RenewTime.Time)
	return age >= 0 && age < t.live.options.LeaseDuration/4
}

// stillOurs returns nil if a write may go out: the lease is held, and stays so for long enough.
// Each write asks first, so that a process that was stopped for a while, or cut off from the API
// server, writes nothing more.
func (c *cluster) stillOurs(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.tenure == nil {
		return errors.New("nothing is written without the lease")
	}
	err := c.tenure.renew(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // keep has found out meanwhile that the lease is lost, which ends what renew asks
	}
	return err
}
