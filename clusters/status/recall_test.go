package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestRecallSilence checks that a member's silence counts from the time at which passes first found it while etcd had a
// leader. Before passes have recorded a time, the start is unknown.
func TestRecallSilence(t *testing.T) {
	silent := v1alpha1.MemberStatus{ID: "2", Health: v1alpha1.MemberUnreachable, Since: metav1.NewTime(noon)}
	tests := []struct {
		name   string
		status v1alpha1.EtcdClusterStatus
		want   time.Time
	}{
		{name: "silent before", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{silent}}, want: noon},
		{name: "healthy before", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{{ID: "2", Health: v1alpha1.MemberHealthy, Since: metav1.NewTime(noon)}}}},
		{name: "another member", status: v1alpha1.EtcdClusterStatus{Leader: "a-0", Members: []v1alpha1.MemberStatus{{ID: "3", Health: v1alpha1.MemberUnreachable, Since: metav1.NewTime(noon)}}}},
		{name: "nobody answered", status: v1alpha1.EtcdClusterStatus{Members: []v1alpha1.MemberStatus{silent}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			members := []decide.Member{{ID: 1, Answers: true}, {ID: 2}}
			RecallSilence(&v1alpha1.EtcdCluster{Status: test.status}, members, noon.Add(time.Minute))
			if !members[0].SilentSince.IsZero() || !members[1].SilentSince.Equal(test.want) {
				t.Errorf("got %+v", members)
			}
		})
	}
}

// TestStrandedSinceIsRememberedPerMember checks that the time at which a volume was first found stranded is remembered
// for its member, even before the member has started, but not for a different member in the same slot.
func TestStrandedSinceIsRememberedPerMember(t *testing.T) {
	began := time.Unix(1000, 0).UTC()
	s := decide.State{
		Name: "a", Now: began,
		Membership: decide.Membership{Known: true, Members: []decide.Member{{ID: 2, PeerURL: "https://a-1.a.b.svc:2380", Learner: true}}},
		Replicas:   []decide.Replica{{Ordinal: 1, Pod: decide.PodPending, Stranded: "its node is gone"}},
	}
	var status v1alpha1.EtcdClusterStatus
	for range 3 {
		status.Members = memberStatuses(s, status)
		s.Replicas[0].StrandedSince = StrandedBefore(&v1alpha1.EtcdCluster{Status: status}, s, 1)
		s.Now = s.Now.Add(time.Hour)
	}
	if got := s.Replicas[0].StrandedSince; !got.Equal(began) {
		t.Errorf("it is stranded since %s", got)
	}
	s.Membership.Members[0].ID = 7
	if got := StrandedBefore(&v1alpha1.EtcdCluster{Status: status}, s, 1); !got.IsZero() {
		t.Errorf("another member in its slot is stranded since %s", got)
	}
	s.Replicas[0] = decide.Replica{Ordinal: 1, Pod: decide.PodPending}
	if status.Members = memberStatuses(s, status); !status.Members[0].StrandedSince.IsZero() {
		t.Errorf("it is not stranded, and since %s", status.Members[0].StrandedSince)
	}
}

// TestWaitIsRecordedInStatus checks that a wait is written once, read back, written again after ten minutes, and
// removed when the wait ends.
func TestWaitIsRecordedInStatus(t *testing.T) {
	live := liveCluster()
	entry := healthyEntry()
	entry.State.Membership.Members[0].Answers = false
	pass := func(at time.Duration, outcome *report.Outcome) bool {
		entry.State.Now, entry.Outcome = noon.Add(at), outcome
		entry.State.Waited = Waited(live, entry.State.Now)
		entry.Decision = decide.Decide(entry.State)
		status := newStatus(live, live, entry, fetchedMain)
		worth := WorthWriting(live.Status, status)
		live.Status = status
		return worth
	}
	for _, step := range []struct {
		at    time.Duration
		news  bool
		waits int
	}{{0, true, 1}, {time.Minute, false, 1}, {9 * time.Minute, false, 1}, {10 * time.Minute, true, 1}, {19 * time.Minute, false, 1}} {
		if got := pass(step.at, nil); got != step.news || len(live.Status.Waiting) != step.waits || !live.Status.Waiting[0].Since.Time.Equal(noon) {
			t.Errorf("after %s: news %t, %+v", step.at, got, live.Status.Waiting)
		}
	}
	if !pass(20*time.Minute, &report.Outcome{Changed: true}) || len(live.Status.Waiting) > 0 {
		t.Errorf("something has changed, and it still waits: %+v", live.Status.Waiting)
	}
}

// TestLastSeen checks that the members' revisions are returned only for the cluster to which the status belongs.
func TestLastSeen(t *testing.T) {
	custom := &v1alpha1.EtcdCluster{Status: v1alpha1.EtcdClusterStatus{ClusterID: "c1",
		Members: []v1alpha1.MemberStatus{{Name: "a-0", Revision: 18}, {Name: "a-1", Revision: 20}}}}
	if seen := LastSeen(custom, 0xc1); len(seen) != 2 || seen[1] != (decide.SeenMember{Name: "a-1", Revision: 20}) {
		t.Errorf("%+v", seen)
	}
	for _, other := range []decide.ID{0, 0xc2} {
		if seen := LastSeen(custom, other); seen != nil {
			t.Errorf("%s: %+v", other, seen)
		}
	}
}

// TestFutureSinceIsCorrected checks that times of silence, waits and stranded volumes that were written while the API
// server's clock was a day ahead are not used once the clock is corrected, neither before nor after the clock reaches
// these times.
func TestFutureSinceIsCorrected(t *testing.T) {
	live := liveCluster()
	entry := healthyEntry()
	m := &entry.State.Membership.Members[2]
	m.Answers = false
	entry.State.Replicas[1] = decide.Replica{Ordinal: 1, Pod: decide.PodPending, Stranded: "its node is gone"}
	for _, step := range []struct{ at, since time.Duration }{
		{24 * time.Hour, 24 * time.Hour}, {0, 0}, {time.Minute, 0},
	} {
		s := &entry.State
		s.Now = noon.Add(step.at)
		s.Waited = Waited(live, s.Now)
		m.SilentSince = time.Time{}
		RecallSilence(live, s.Membership.Members, s.Now)
		s.Replicas[1].StrandedSince = StrandedBefore(live, *s, 1)
		entry.Decision = decide.Decide(*s)
		status := newStatus(live, live, entry, fetchedMain)
		if step.at < time.Minute && !WorthWriting(live.Status, status) {
			t.Errorf("%s: it is not written", step.at)
		}
		live.Status = status
		since := metav1.NewTime(noon.Add(step.since))
		if got := status.Members[1]; !got.Since.Equal(&since) || !got.StrandedSince.Equal(&since) {
			t.Errorf("%s: silent since %s, stranded since %s", step.at, got.Since, got.StrandedSince)
		}
		if len(status.Waiting) != 1 || !status.Waiting[0].Since.Equal(&since) {
			t.Errorf("%s: %+v", step.at, status.Waiting)
		}
		if step.at > 0 && step.since == 0 && !m.SilentSince.Equal(noon) {
			t.Errorf("%s: silent since %s", step.at, m.SilentSince)
		}
	}
}
