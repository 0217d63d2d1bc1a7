package clusters

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// life is a cluster of fake members without TLS, and a long-running process to compare with new processes.
type life struct {
	*testing.T
	etcd   *fakeEtcd
	old    *Live
	pods   []*corev1.Pod
	claims []*corev1.PersistentVolumeClaim
	record decide.Record
	adopts decide.AdoptionOrder
	// drops makes keepStatus's API server discard status updates. stop stops the run.
	drops bool
	stop  func()
}

func newLife(t *testing.T) *life {
	l := &life{T: t, etcd: newFakeEtcd(t, 3), record: decide.Record{Token: "t", ClusterID: fakeClusterID}}
	l.old = New(clientThatPanics(t), Options{Timeout: time.Second, LeaseDuration: time.Hour})
	t.Cleanup(l.old.etcd.Close)
	for n := range 3 {
		l.pods, l.claims = append(l.pods, l.pod(n, "")), append(l.claims, claimOf(n, ""))
		l.record = l.record.With(decide.RecordedMember{Ordinal: n, Mode: decide.Sealed, ID: decide.ID(n + 1), VolumeUID: fmt.Sprint("volume-", n)})
	}
	return l
}

// leaseOf returns the lease of cluster a, renewed by the given holder.
func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	seconds := int32(3600)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: renewed},
	}}
}

// claimOf returns the claim of a member. life distinguishes it from other claims with the same name.
func claimOf(ordinal int, life string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: objects.VolumeClaimName("a", ordinal), UID: types.UID(fmt.Sprint("volume-", ordinal, life)),
		},
	}
}

// pod returns a running pod. life distinguishes it from other pods with the same name.
func (l *life) pod(ordinal int, life string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: objects.PodName("a", ordinal), UID: types.UID(fmt.Sprint("pod-", ordinal, life))}}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, l.etcd.address(ordinal)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return pod
}

// seen returns the cluster as the given process currently observes it.
func (l *life) seen(by *Live) *cluster {
	c := &cluster{live: by, names: objects.NamesOf("a"), own: &inventory.Cluster{Pods: l.pods, Claims: l.claims}}
	c.target.Cluster.Name, c.target.Cluster.Namespace = "a", "default"
	c.lease = &leaseHold{live: by, lease: leaseOf(by.holder.String(), time.Now())}
	c.target.Cluster.Spec.TLS.Mode = v1alpha1.TLSDisabled
	c.state = decide.State{
		Name: "a", Record: l.record, Replicas: c.replicas(),
		Declared: decide.Declared{Replicas: 3, Version: "3.6.16", SpecHash: "h", Lifecycle: "Running", Adoption: l.adopts},
	}
	c.askEtcd(l.Context())
	return c
}

// same fails the test unless the old process and a new process make the same observation and decision. It returns the
// cluster as the old process observes it.
func (l *life) same(when string) *cluster {
	l.Helper()
	young := New(clientThatPanics(l.T), Options{Timeout: time.Second})
	defer young.etcd.Close()
	old, fresh := l.seen(l.old), l.seen(young)
	if was, is := inWords(old.state), inWords(fresh.state); was != is {
		l.Fatalf("%s the running process decides\n%s\nand a new process decides\n%s", when, was, is)
	}
	return old
}

func inWords(s decide.State) string {
	s.Membership.Why = "" // the reason for a timeout depends on milliseconds
	s.Membership.Members = slices.Clone(s.Membership.Members)
	for i := range s.Membership.Members {
		s.Membership.Members[i].Why = ""
	}
	state, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err.Error()
	}
	return decide.Decide(s).String() + "\n" + string(state)
}

// TestProcessAgeDoesNotAffectDecisions replaces a member whose new pod already exists when the old member is removed,
// so that the same pod hosts the next member. At each step, a long-running process makes the same decision as a new
// process.
func TestProcessAgeDoesNotAffectDecisions(t *testing.T) {
	l := newLife(t)
	c := l.same("with all members responding")
	if m := c.state.Membership; !m.Known || decide.Answering(m.Members) != 3 {
		t.Fatalf("not all members respond: %+v", m)
	}
	l.pods[1], l.claims[1] = l.pod(1, "-next"), claimOf(1, "-next")
	c = l.same("with a new pod")
	if outcome, err := c.changeEtcd(t.Context(), decide.RemoveMember{}, removal(decide.RemoveMember{ID: 2, Name: "a-1"})); err != nil || !outcome.Changed {
		t.Fatalf("remove a-1: %+v, %v", outcome, err)
	}
	l.same("after the removal, while the member still responds,")
	l.record = l.record.WithRemoved(decide.RemovedMember{Ordinal: 1, VolumeUID: "volume-1"})
	c = l.same("once the removal is recorded")
	if outcome, err := c.changeEtcd(t.Context(), decide.AddLearner{}, addition(decide.AddLearner{Ordinal: 1, PeerURL: peerOf(1)})); err != nil || !outcome.Changed {
		t.Fatalf("add a-1: %+v, %v", outcome, err)
	}
	l.same("with a learner in the slot of a removed member")
	l.record.Removed = nil
	l.record = l.record.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Joining})
	l.same("with the learner recorded")
	l.etcd.join(1)
	c = l.same("once the learner has started in the same pod")
	if d := decide.Decide(c.state); d.Rule != "Seal" {
		t.Errorf("the learner is not sealed: %s", d)
	}
	l.record = decide.SealedRecord(c.state, decide.Seal{ClusterID: fakeClusterID, Members: decide.Ordinals(0).With(1)}, "t")
	if d := decide.Decide(l.same("once the learner is sealed").state); d.Rule != "PromoteLearner" {
		t.Errorf("the learner is not promoted: %s", d)
	}
}

// TestListedMemberRecordedAsRemovedIsAsked checks that a member that etcd lists is still asked if a restored, older
// record lists it as removed, even if no other member returns a list.
func TestListedMemberRecordedAsRemovedIsAsked(t *testing.T) {
	l := newLife(t)
	for ordinal, alone := range map[int]bool{1: false, 0: true} {
		l.record.Removed = []decide.RemovedMember{{Ordinal: ordinal, VolumeUID: "old"}}
		for other := range 3 {
			l.etcd.running[other].hangs.Store(alone && other != ordinal)
		}
		m := l.same("with a restored, older record").state.Membership
		if m.Known == alone || m.Unconfirmed != alone || !m.Members[ordinal].Answers {
			t.Errorf("a-%d, alone %t: %+v", ordinal, alone, m)
		}
	}
}

// TestPodWithNewAddressIsReached checks that a pod is reached after its address has changed, for example because its
// node has restarted. The connection to the old address hangs.
func TestPodWithNewAddressIsReached(t *testing.T) {
	l := newLife(t)
	l.same("before")
	l.etcd.running[2].hangs.Store(true)
	address := l.etcd.address(12)
	l.etcd.serve(2, 3, address)
	l.pods[2].Status.PodIP = address
	if m := l.same("once the pod has a new address").state.Membership; !m.Known || !m.Members[2].Answers {
		t.Errorf("%+v", m)
	}
}
