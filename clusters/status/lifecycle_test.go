package status

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// pass writes the status of a pass and returns the status of the member with the given ID.
func pass(live *v1alpha1.EtcdCluster, entry report.Cluster, id string) v1alpha1.MemberStatus {
	live.Status = newStatus(live, live, entry, fetchedMain)
	for _, m := range live.Status.Members {
		if m.ID == id {
			return m
		}
	}
	return v1alpha1.MemberStatus{}
}

// silentEntry returns the report for a cluster in which one member, the previous leader, is not responding.
func silentEntry(at time.Time) report.Cluster {
	entry := healthyEntry()
	entry.State.Now = at
	members := entry.State.Membership.Members
	members[1].Answers, members[1].Leader, members[0].Leader = false, false, true
	return entry
}

func conditionOf(t *testing.T, status v1alpha1.EtcdClusterStatus, kind string) metav1.Condition {
	t.Helper()
	condition := meta.FindStatusCondition(status.Conditions, kind)
	if condition == nil {
		t.Fatalf("no condition %s in %+v", kind, status.Conditions)
	}
	return *condition
}

func TestUnreachableSinceIsKept(t *testing.T) {
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	began := noon.Add(time.Minute)
	for n := range 3 {
		if m := pass(live, silentEntry(began.Add(time.Duration(n)*time.Minute)), "1"); m.Health != v1alpha1.MemberUnreachable || !m.Since.Time.Equal(began) {
			t.Fatalf("pass %d: got %+v", n, m)
		}
	}
	learner := silentEntry(began.Add(time.Hour))
	learner.State.Membership.Members[1].Learner = true
	if m := pass(live, learner, "1"); !m.Since.Time.Equal(began) {
		t.Errorf("in a different role: silent since %s", m.Since)
	}
	if m := pass(live, healthyEntry(), "1"); m.Health != v1alpha1.MemberHealthy || !m.Since.Time.Equal(noon) {
		t.Errorf("answers again: got %+v", m)
	}
}

// TestSilenceOfAllMembersIsNotCounted checks that a member's silence does not count while all members are silent,
// because Quorate may be cut off and the member may be healthy. Its silence starts once other members respond.
func TestSilenceOfAllMembersIsNotCounted(t *testing.T) {
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	entry := healthyEntry()
	entry.State.Now = noon.Add(time.Minute)
	entry.State.Membership = decide.Membership{Why: "no route to the pods"}
	if m := pass(live, entry, "1"); !m.Since.Time.Equal(entry.State.Now) {
		t.Fatalf("got %+v", m)
	}
	later := noon.Add(time.Hour)
	for n := range 2 {
		if m := pass(live, silentEntry(later.Add(time.Duration(n)*time.Minute)), "1"); !m.Since.Time.Equal(later) {
			t.Errorf("pass %d: silent since %s, want %s", n, m.Since, later)
		}
	}
}

func TestDisagreeingMemberIsUnhealthy(t *testing.T) {
	entry := healthyEntry()
	for n := range 3 {
		entry.State.Record.Members = append(entry.State.Record.Members, decide.RecordedMember{Ordinal: n, Mode: decide.Sealed})
	}
	entry.State.Membership.Members[0].Disagrees = "believes that d-1 is a member"
	live := liveCluster()
	if m := pass(live, entry, "3"); m.Health != v1alpha1.MemberUnhealthy || m.Message != "believes that d-1 is a member" || live.Status.Voters != "2/3" {
		t.Errorf("got %+v", live.Status)
	}
}

func TestOrphanStatus(t *testing.T) {
	const dropped = "main@sha1:def no longer declares it"
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	entry := healthyEntry()
	entry.State.Declared.Orphaned = dropped
	entry.Decision = decide.Decision{Rule: "Orphaned", Verdict: decide.Done, Message: dropped + "; it is left unchanged"}
	later := reconcile.SourceStatus{Revision: "main@sha1:def"}
	events := func(status v1alpha1.EtcdClusterStatus) []kube.Event {
		return Events(live, status, targets.Target{}, entry, "host", noon)
	}

	status := newStatus(live, live, entry, later)
	if got := conditionOf(t, status, v1alpha1.ConditionOrphaned); got.Status != metav1.ConditionTrue || got.Message != dropped {
		t.Errorf("got %+v", got)
	}
	if ready := conditionOf(t, status, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.Reason != "Orphaned" || status.DeclaredRevision != "main@sha1:abc" {
		t.Errorf("got %+v, declared by %s", ready, status.DeclaredRevision)
	}
	if told := events(status); len(told) != 1 || !told[0].Warning || !strings.HasPrefix(told[0].Note, dropped) {
		t.Errorf("first reported as %+v", told)
	}
	live.Status = status
	if told := events(newStatus(live, live, entry, later)); len(told) != 0 {
		t.Errorf("reported again as %+v", told)
	}
	entry.State.Membership = decide.Membership{Why: "no member pod is running"}
	if ready := conditionOf(t, newStatus(live, live, entry, later), v1alpha1.ConditionReady); ready.Status != metav1.ConditionUnknown {
		t.Errorf("with unknown members: got %+v", ready)
	}
	if status := newStatus(live, live, healthyEntry(), later); meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionOrphaned) != nil || status.DeclaredRevision != "main@sha1:def" {
		t.Errorf("declared again: got %+v", status)
	}
}

// TestHeldRemovalIsReportedOnce checks that a held removal is reported once, in addition to the decision, and that
// Ready depends only on the members.
func TestHeldRemovalIsReportedOnce(t *testing.T) {
	const said = "main@sha1:def no longer declares it"
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	live.Status.DeclaredSource = "https://host/fleet.git"
	const warning = said + ": it is kept as last applied"
	heldBack := targets.Target{Held: said, Warnings: []string{warning}}
	later := reconcile.SourceStatus{Revision: "main@sha1:def"}
	tell := func(t targets.Target) (v1alpha1.EtcdClusterStatus, []string) {
		status := newStatus(live, live, healthyEntry(), later)
		setRemovalHeld(&status, t, live.Status, metav1.NewTime(noon))
		var notes []string
		for _, e := range Events(live, status, t, healthyEntry(), "host", noon) {
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return status, notes
	}

	status, notes := tell(heldBack)
	if got := conditionOf(t, status, v1alpha1.ConditionRemovalHeld); got.Status != metav1.ConditionTrue || got.Message != said {
		t.Errorf("got %+v", got)
	}
	if ready := conditionOf(t, status, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || status.DeclaredRevision != "main@sha1:abc" || status.DeclaredSource == "" {
		t.Errorf("got %+v, declared by %s of %s", ready, status.DeclaredRevision, status.DeclaredSource)
	}
	if len(notes) != 1 || notes[0] != "RemovalHeld: "+warning {
		t.Errorf("first reported as %q", notes)
	}
	live.Status = status
	if again, notes := tell(heldBack); len(notes) != 0 || WorthWriting(status, again) {
		t.Errorf("reported again as %q, %+v", notes, again)
	}
	if status, _ := tell(targets.Target{}); meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRemovalHeld) != nil || status.DeclaredRevision != "main@sha1:def" {
		t.Errorf("declared again: got %+v", status)
	}
}

// TestStatusOfClusterDeclaredElsewhereIsKept checks that only the state of etcd is reported if another run reads the
// cluster's source.
func TestStatusOfClusterDeclaredElsewhereIsKept(t *testing.T) {
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	status := newStatus(live, live, healthyEntry(), reconcile.SourceStatus{Revision: "other@sha1:def"})
	setRemovalHeld(&status, targets.Target{Elsewhere: true}, live.Status, metav1.NewTime(noon))
	if WorthWriting(live.Status, status) {
		t.Errorf("got %+v, was %+v", status, live.Status)
	}
}

func TestStoppedClusterIsNotReady(t *testing.T) {
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	stopping := healthyEntry()
	stopping.State.Declared.Lifecycle = "Stopped"
	stopping.Decision = decide.Decision{Rule: "Stop", Verdict: decide.Act, Action: decide.ApplyObjects{}, Message: "stop the pods"}
	stopped := stopping
	stopped.State.Membership, stopped.State.Replicas = decide.Membership{Why: "no member pod is running"}, nil
	stopped.Decision = decide.Decision{Rule: "Stop", Verdict: decide.Done, Message: "stopped"}
	for _, entry := range []report.Cluster{stopping, stopped} {
		pass(live, entry, "1")
		if ready := conditionOf(t, live.Status, v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse || ready.Reason != "Stop" {
			t.Errorf("%s: got %+v", entry.Decision.Message, ready)
		}
	}
	if live.Status.ClusterID != "c1" || live.Status.Version != "3.5.35" || live.Status.Voters != "0/3" {
		t.Errorf("got %+v", live.Status)
	}
}

// TestClusterIDIsKeptUntilEverythingIsDeleted checks that a cluster may be bootstrapped again only after its last
// volume is gone.
func TestClusterIDIsKeptUntilEverythingIsDeleted(t *testing.T) {
	deleted := func() report.Cluster {
		entry := healthyEntry()
		entry.State.Declared.Lifecycle, entry.State.Record, entry.State.Replicas = "Deleted", decide.Record{}, nil
		entry.State.Membership = decide.Membership{Why: "no member pod is running"}
		return entry
	}
	withVolume, withObject, withPod := deleted(), deleted(), deleted()
	withVolume.State.Replicas = []decide.Replica{{Ordinal: 1, Pod: decide.PodAbsent, VolumeUID: "v"}}
	withPod.State.Replicas = []decide.Replica{{Ordinal: 1, Pod: decide.PodTerminating}}
	withObject.State.Objects.Remaining = []string{"Secret a-ca"}
	stopped := deleted()
	stopped.State.Declared.Lifecycle = "Stopped"
	for name, test := range map[string]struct {
		entry report.Cluster
		id    string
	}{"gone": {deleted(), ""}, "a volume": {withVolume, "c1"}, "an object": {withObject, "c1"}, "a pod": {withPod, "c1"}, "only stopped": {stopped, "c1"}} {
		live := liveCluster()
		pass(live, healthyEntry(), "1")
		pass(live, test.entry, "1")
		got := live.Status
		if forgotten := got.Version == "" && len(got.Members) == 0 && got.Replicas == 0 && got.ClientSecretName == ""; got.ClusterID != test.id || forgotten != (test.id == "") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestStatusKeepsTheClusterID checks that the ID of a different etcd cluster is never written to the status, because
// the next pass would trust it.
func TestStatusKeepsTheClusterID(t *testing.T) {
	live := liveCluster()
	pass(live, healthyEntry(), "1")
	stranger := healthyEntry()
	stranger.State.Record, stranger.State.Membership.ClusterID = decide.Record{}, 0xbad
	if pass(live, stranger, "1"); live.Status.ClusterID != "c1" {
		t.Errorf("got cluster ID %s", live.Status.ClusterID)
	}
}
