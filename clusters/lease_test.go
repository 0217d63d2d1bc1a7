package clusters

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// TestStaleWritesAreRejected checks that the API server rejects writes based on an outdated observation of the
// objects, regardless of the lease.
func TestStaleWritesAreRejected(t *testing.T) {
	s := newStage(t)
	early := s.observe() // nothing exists yet
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.late(early, decide.Bootstrap{Replicas: 3}, "the cluster has already formed")
	s.makePods()
	s.lateObjects(early)

	s.spec = "version: 3.6.16, lifecycle: Stopped"
	old := s.observe() // a pass that is about to scale to 0
	s.spec = "version: 3.6.16"
	s.scale("5")
	s.late(old, decide.ApplyObjects{}, "it has changed since it was read")
	if n := *s.set().Spec.Replicas; n != 5 {
		s.Errorf("an old StatefulSet of %d replicas was applied over that of 5", n)
	}
	s.lateDelete()
}

// late carries out an action like a pass that was paused after taking the lease and does not know that another pass has
// taken the lease since.
func (s *stage) late(c *cluster, a decide.Action, why string) {
	s.Helper()
	c.lease = &leaseHold{live: s.live, lease: leaseOf(s.live.holder.String(), time.Now())}
	outcome, err := c.carryOut(s.Context(), a)
	if err == nil || !strings.Contains(err.Error(), why) {
		s.Errorf("%s: %+v, %v, want %q", a, outcome, err, why)
	}
}

// lateObjects checks that objects that did not exist when observed are only created, never overwritten.
func (s *stage) lateObjects(early *cluster) {
	s.Helper()
	in, err := s.observe().input(s.observe().state.Record)
	if err != nil {
		s.Fatal(err)
	}
	built, err := objects.Build(in)
	if err != nil {
		s.Fatal(err)
	}
	early.lease = &leaseHold{live: s.live, lease: leaseOf(s.live.holder.String(), time.Now())}
	for _, object := range built {
		if _, err := early.applyOne(s.Context(), object); !kube.IsConflict(err) {
			s.Errorf("%s %s was overwritten: %v", object.Kind, object.Name, err)
		}
	}
}

// lateDelete checks that a pod that has changed since it was observed is kept.
func (s *stage) lateDelete() {
	s.Helper()
	pods := s.server.Client.CoreV1().Pods("default")
	read, err := pods.Get(s.Context(), "a-1", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	changed := read.DeepCopy()
	changed.Labels["changed"] = "yes"
	if _, err := pods.Update(s.Context(), changed, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
	if deleted, err := s.live.kube.Delete(s.Context(), "Pod", read); deleted || !kube.IsConflict(err) {
		s.Errorf("deleted %t, %v", deleted, err)
	}
}

// TestWritesRequireLease checks that writes require the lease.
func TestWritesRequireLease(t *testing.T) {
	s := newStage(t)
	s.foreignLease()
	s.renewed()
	s.lost()
	s.renewedAhead()
	s.withoutLabels()
}

// foreignLease checks that an unmanaged lease with the cluster's name, such as a leader election lease, is never taken.
func (s *stage) foreignLease() {
	s.Helper()
	leases := s.server.Client.CoordinationV1().Leases("default")
	theirs := leaseOf("election", time.Now())
	if _, err := leases.Create(s.Context(), theirs, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	d := decide.Decide(s.observe().state)
	if d.Rule != "ForeignObjects" || !strings.Contains(d.Message, "Lease a exists but was not created by Quorate") {
		s.Errorf("%s", d)
	}
	if err := leases.Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// renewed checks that a process that acts for longer than the lease duration keeps the lease.
func (s *stage) renewed() {
	s.Helper()
	s.live.options.LeaseDuration = 300 * time.Millisecond
	ctx, release, err := s.observe().hold(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	first := s.lease().Spec.RenewTime.Time
	for end := time.Now().Add(10 * time.Second); !s.lease().Spec.RenewTime.After(first.Add(s.live.options.LeaseDuration)); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatal("the lease is not renewed")
		}
	}
	release()
	if err := context.Cause(ctx); errors.Is(err, reconcile.ErrLocked) {
		s.Error(err)
	}
}

// lost checks that the action ends and writes nothing more once another process has taken the lease.
func (s *stage) lost() {
	s.Helper()
	s.live.options.LeaseDuration = 6 * time.Second // renewed every two seconds, so that another process can take it in between
	c := s.observe()
	ctx, release, err := c.hold(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.change(func(l *coordinationv1.Lease) {
		other := "elsewhere/7/x.y.z"
		l.Spec.HolderIdentity = &other
	})
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, reconcile.ErrLocked) {
		s.Errorf("the context ends with %v, want ErrLocked", err)
	}
	// A process that was paused may notice this only when it writes.
	if err := c.stillOurs(s.Context()); !errors.Is(err, reconcile.ErrLocked) {
		s.Errorf("writing is still allowed: %v", err)
	}
	if _, err := c.carryOut(s.Context(), decide.Bootstrap{Replicas: 3}); !errors.Is(err, reconcile.ErrLocked) {
		s.Errorf("the action continues: %v", err)
	}
	release()
	if left := s.observe().state.Objects.Remaining; len(left) > 0 {
		s.Errorf("objects were written without the lease: %v", left)
	}
	s.change(func(l *coordinationv1.Lease) {
		nobody := ""
		l.Spec.HolderIdentity = &nobody
	})
}

// renewedAhead checks that a lease whose renewal time is in the future, because a clock was set back, is renewed before
// anything is written.
func (s *stage) renewedAhead() {
	s.Helper()
	s.change(func(l *coordinationv1.Lease) {
		own := s.live.holder.String()
		l.Spec.HolderIdentity, l.Spec.RenewTime = &own, &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
	})
	c := s.observe()
	s.change(func(l *coordinationv1.Lease) {
		other := "elsewhere/7/x.y.z"
		l.Spec.HolderIdentity = &other
	})
	if _, release, err := c.hold(s.Context()); !errors.Is(err, reconcile.ErrLocked) {
		s.Errorf("a lease taken by another process is held: %v", err)
		if err == nil {
			release()
		}
	}
	s.change(func(l *coordinationv1.Lease) {
		nobody := ""
		l.Spec.HolderIdentity = &nobody
	})
}

// withoutLabels checks that the cluster's own lease is not treated as unmanaged if it has lost its labels.
func (s *stage) withoutLabels() {
	s.Helper()
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	custom := s.observe().own.Custom
	s.change(func(l *coordinationv1.Lease) {
		l.Labels = nil
		l.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(custom, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
	})
	if d := decide.Decide(s.observe().state); d.Rule != "LabelsLost" || !strings.Contains(d.Message, "Lease a has lost") {
		s.Errorf("%s", d)
	}
}

func (s *stage) lease() *coordinationv1.Lease {
	s.Helper()
	lease, err := s.server.Client.CoordinationV1().Leases("default").Get(s.Context(), "a", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

// change changes the lease, even while it is being renewed.
func (s *stage) change(how func(*coordinationv1.Lease)) {
	s.Helper()
	for {
		lease := s.lease()
		how(lease)
		_, err := s.server.Client.CoordinationV1().Leases("default").Update(s.Context(), lease, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !kube.IsConflict(err) {
			s.Fatal(err)
		}
	}
}
