package clusters

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

func TestHolderIdentityRoundTrip(t *testing.T) {
	me := newHolder()
	if got := parseHolder(me.String()); got != me || me.Random == "" {
		t.Errorf("got %+v, want %+v", got, me)
	}
}

// TestEachLiveHasItsOwnLeaseHolder checks that two parts of one process that happen to use the same Kubernetes cluster
// do not act on an etcd cluster at the same time.
func TestEachLiveHasItsOwnLeaseHolder(t *testing.T) {
	eu, again := New(nil, Options{}), New(nil, Options{})
	identity, seconds, now := eu.holder.String(), int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	if again.lockHolder(lease, now.Time) == "" {
		t.Error("one treats the lease of the other as its own")
	}
	if who := eu.lockHolder(lease, now.Time); who != "" {
		t.Errorf("its own lease is held by %s", who)
	}
}

func TestLockHolder(t *testing.T) {
	live := &Live{holder: newHolder()}
	now := time.Unix(1_000_000, 0)
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		seconds := int32(15)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds,
			AcquireTime: &metav1.MicroTime{Time: renewed}, RenewTime: &metav1.MicroTime{Time: renewed},
		}}
	}
	other := holder{Host: "runner-7", PID: 42, Random: "ABCDEFGHIJ"}.String()
	samePID := holder{Host: live.holder.Host, PID: live.holder.PID, Random: "ABCDEFGHIJ"}
	tests := []struct {
		name  string
		lease *coordinationv1.Lease
		want  string
	}{
		{"no lease", nil, ""},
		{"released", lease("", now), ""},
		{"held by this process", lease(live.holder.String(), now), ""},
		{"held by another process", lease(other, now), "process 42 on runner-7 has held the lease since 1970-01-12T13:46:40Z"},
		{"held by another process, expired", lease(other, now.Add(-16*time.Second)), ""},
		{"an earlier process with the same PID", lease(samePID.String(), now), samePID.Words() + " has held the lease since 1970-01-12T13:46:40Z"},
		{"an earlier process, expired", lease(samePID.String(), now.Add(-16*time.Second)), ""},
		{"holder in an unknown format", lease("someone", now), "process 0 on someone has held the lease since 1970-01-12T13:46:40Z"},
		{"holder in an unknown format, with slashes", lease(strings.Repeat("a/", 3), now), "process 0 on a/a/a/ has held the lease since 1970-01-12T13:46:40Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := live.lockHolder(test.lease, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestForgedLeaseExpires checks that a forged lease, for example from a tenant of the namespace, does not lock a
// cluster for long, regardless of its duration and renewal time.
func TestForgedLeaseExpires(t *testing.T) {
	live, now := &Live{holder: newHolder()}, time.Unix(1_000_000_000, 0)
	for _, test := range []struct {
		name    string
		renewed time.Duration // after now
		seconds int32
		held    bool
	}{
		{"maximum duration, just renewed", 0, math.MaxInt32, true},
		{"maximum duration, 10 minutes ago", -MaxLeaseDuration, math.MaxInt32, true},
		{"maximum duration, longer ago", -MaxLeaseDuration - time.Second, math.MaxInt32, false},
		{"renewed ahead within the clock skew", 5 * time.Minute, 15, true},
		{"renewed further ahead", 5*time.Minute + time.Second, 15, false},
		{"renewed 50 years ahead", 50 * 365 * 24 * time.Hour, math.MaxInt32, false},
		{"minimum duration", 0, math.MinInt32, false},
	} {
		lease := leaseOf("elsewhere/1/x", now.Add(test.renewed))
		lease.Spec.LeaseDurationSeconds = &test.seconds
		if by := live.lockHolder(lease, now); (by != "") != test.held {
			t.Errorf("%s: holder %q, want held: %t", test.name, by, test.held)
		}
	}
}

// TestPreviousHolderOfForgedLeaseStops checks that the previous holder can neither renew the lease nor write after
// another pass has taken the lease because its forged renewal time made it look expired.
func TestPreviousHolderOfForgedLeaseStops(t *testing.T) {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	first, second := newHolder(), s.live.holder
	s.change(func(l *coordinationv1.Lease) {
		identity := first.String()
		l.Spec.HolderIdentity, l.Spec.RenewTime = &identity, &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
	})
	s.live.holder = first
	previous := s.observe()
	s.live.holder = second
	next := s.observe()
	if by := next.state.LockHolder; by != "" {
		t.Fatal(by)
	}
	_, release, err := next.hold(s.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s.live.holder = first
	if _, _, err := previous.hold(s.Context()); !errors.Is(err, reconcile.ErrLocked) {
		t.Errorf("the previous holder continues: %v", err)
	}
	s.live.holder = second
}
