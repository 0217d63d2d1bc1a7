package status

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// healthyEntry returns the report for a converged cluster of three members.
func healthyEntry() report.Cluster {
	s := decide.State{
		Name: "a", Now: noon, Declared: decide.Declared{Replicas: 3, Version: "3.6.16"},
		Record: decide.Record{Token: "t", ClusterID: 0xc1},
		Membership: decide.Membership{Known: true, ClusterID: 0xc1, Members: []decide.Member{
			{ID: 3, Name: "a-2", Started: true, Answers: true, Version: "3.6.16", DBSize: 1 << 20, Revision: 7},
			{ID: 1, Name: "a-0", Started: true, Answers: true, Version: "3.6.16", DBSize: 1 << 20, Revision: 7, Leader: true},
			{ID: 2, Name: "a-1", Started: true, Answers: true, Version: "3.5.35", DBSize: 1 << 20, Revision: 7},
		}},
	}
	for n := range 3 {
		s.Replicas = append(s.Replicas, decide.Replica{Ordinal: n, Pod: decide.PodReady, PodUID: "p"})
	}
	return report.Cluster{State: s, Decision: decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}}
}

func liveCluster() *v1alpha1.EtcdCluster {
	live := &v1alpha1.EtcdCluster{}
	live.Name, live.Namespace, live.Generation = "a", "ns", 4
	live.Spec.TLS.Mode = v1alpha1.TLSManaged
	return live
}

var fetchedMain = reconcile.SourceStatus{Revision: "main@sha1:abc"}

func TestHealthyClusterStatus(t *testing.T) {
	live := liveCluster()
	status := newStatus(live, live, healthyEntry(), fetchedMain)
	if status.Voters != "3/3" || status.Leader != "a-0" || status.Version != "3.5.35" || status.ClusterID != "c1" ||
		status.Replicas != 3 || status.ReadyReplicas != 3 || status.ClientSecretName != "a-client-tls" ||
		status.DeclaredRevision != "main@sha1:abc" || status.ObservedGeneration != 4 || status.Rule != "Converged" {
		t.Errorf("got %+v", status)
	}
	if names := status.Members[0].Name + status.Members[1].Name + status.Members[2].Name; names != "a-0a-1a-2" {
		t.Errorf("members out of order: %s", names)
	}
	for kind, want := range map[string]bool{"Ready": true, "Reconciling": false, "Stalled": false, "SourceReady": true} {
		if got := meta.IsStatusConditionTrue(status.Conditions, kind); got != want {
			t.Errorf("%s is %v, want %v", kind, got, want)
		}
	}
}

// TestGuestsInStatus checks that guests are listed under names that no replica has, that their silence is remembered, and
// that only replicas have pods and count as replicas.
func TestGuestsInStatus(t *testing.T) {
	live, entry := liveCluster(), healthyEntry()
	m := &entry.State.Membership
	for i := range m.Members {
		m.Members[i].Leader = false
	}
	m.Members = append(m.Members,
		decide.Member{ID: 0x11, Name: "a-0", Started: true, Answers: true, Version: "3.5.35", Leader: true},
		decide.Member{ID: 0x12, Name: "a-1", Started: true, Why: "no responding endpoint in spec.adopt leads to it"})
	entry.State.Record.Adopted, entry.State.Record.Guests = 0xc1, []decide.ID{0x11, 0x12}
	entry.State.Record.Members = []decide.RecordedMember{{Ordinal: 0, Mode: decide.Sealed}}
	live.Status = newStatus(live, live, entry, fetchedMain)
	if s := live.Status; s.Voters != "3/3" || s.Replicas != 3 || s.ReadyReplicas != 3 || s.Leader != "guest a-0" || len(s.Members) != 5 ||
		len(s.Endpoints) != 1 || !meta.IsStatusConditionTrue(s.Conditions, "Ready") {
		t.Errorf("got %+v", s)
	}
	for _, m := range live.Status.Members {
		if guest := strings.HasPrefix(m.ID, "1") && len(m.ID) == 2; guest != strings.HasPrefix(m.Name, "guest a-") || guest != (m.Pod == "") {
			t.Errorf("got %+v", m)
		}
	}
	RecallSilence(live, m.Members, noon.Add(time.Minute))
	if !m.Members[4].SilentSince.Equal(noon) || !m.Members[2].SilentSince.IsZero() {
		t.Errorf("silent since %s and %s", m.Members[4].SilentSince, m.Members[2].SilentSince)
	}
	entry.State.Membership = decide.Membership{Why: "no quorum"}
	for _, m := range newStatus(live, live, entry, fetchedMain).Members[3:] {
		if m.Pod != "" || !strings.HasPrefix(m.Name, "guest a-") || m.Health != v1alpha1.MemberUnreachable {
			t.Errorf("got %+v", m)
		}
	}
}

// TestStatusIsWrittenOnlyOnChange checks that the status is not written if it is unchanged or only figures have
// changed.
func TestStatusIsWrittenOnlyOnChange(t *testing.T) {
	live := liveCluster()
	first := newStatus(live, live, healthyEntry(), fetchedMain)
	if !WorthWriting(live.Status, first) {
		t.Fatal("the first status is not news")
	}
	live.Status = first
	again := healthyEntry()
	again.State.Now = noon.Add(time.Hour)
	for i := range again.State.Membership.Members {
		again.State.Membership.Members[i].Revision += 1000
		again.State.Membership.Members[i].DBSize += 4096
	}
	if WorthWriting(live.Status, newStatus(live, live, again, fetchedMain)) {
		t.Error("an hour later with other figures: news")
	}
	again.State.Membership.Members[0].DBSize *= 2
	if !WorthWriting(live.Status, newStatus(live, live, again, fetchedMain)) {
		t.Error("a database that doubled is not news")
	}
	again = healthyEntry()
	again.State.Membership.Members[0].Answers = false
	if !WorthWriting(live.Status, newStatus(live, live, again, fetchedMain)) {
		t.Error("a silent member is not news")
	}
	if !WorthWriting(live.Status, newStatus(live, live, healthyEntry(), reconcile.SourceStatus{Error: "unreachable"})) {
		t.Error("a source that cannot be read is not news")
	}
}

// TestUnknownMembershipKeepsMembers checks that, while etcd does not return a list, members are kept in the status as
// last seen, but are marked as unreachable, with the time of that change.
func TestUnknownMembershipKeepsMembers(t *testing.T) {
	live := liveCluster()
	live.Status = newStatus(live, live, healthyEntry(), fetchedMain)
	entry := healthyEntry()
	entry.State.Now = noon.Add(time.Minute)
	entry.State.Membership = decide.Membership{Why: "a-0: i/o timeout"}
	entry.Decision = decide.Decision{Rule: "MembershipUnknown", Verdict: decide.Wait, Message: "etcd does not return a member list"}
	status := newStatus(live, live, entry, reconcile.SourceStatus{Error: "git is down"})
	if len(status.Members) != 3 || status.ClusterID != "c1" || status.Leader != "" || status.Voters != "0/3" {
		t.Errorf("got %+v", status)
	}
	for _, m := range status.Members {
		if m.Health != v1alpha1.MemberUnreachable || !m.Since.Time.Equal(entry.State.Now) || m.Role == v1alpha1.RoleLeader {
			t.Errorf("got %+v", m)
		}
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if status.DeclaredRevision != "main@sha1:abc" || meta.IsStatusConditionTrue(status.Conditions, "SourceReady") || ready == nil || ready.Status != metav1.ConditionUnknown {
		t.Errorf("got %+v", status)
	}
	live.Status = status
	entry.State.Now = entry.State.Now.Add(time.Minute)
	if WorthWriting(live.Status, newStatus(live, live, entry, reconcile.SourceStatus{Error: "git is down"})) {
		t.Error("the same silence a minute later is news")
	}
}

// TestRevisionOfRespondingMemberIsCurrent checks that, while etcd does not return a list, the status contains the
// newest revision that a member reported, and never an older one, because messages about a recovery contain that
// revision.
func TestRevisionOfRespondingMemberIsCurrent(t *testing.T) {
	live := liveCluster()
	live.Status = newStatus(live, live, healthyEntry(), fetchedMain)
	survivor := live.Status.Members[1]
	for _, revision := range []int64{survivor.Revision + 1, survivor.Revision} {
		entry := healthyEntry()
		m := entry.State.MembersInOrder()[1]
		m.Answers, m.Revision = false, revision // without quorum, it does not know a leader
		entry.State.Membership = decide.Membership{Why: "no leader", Members: []decide.Member{m}}
		live.Status = newStatus(live, live, entry, fetchedMain)
		if got := live.Status.Members[1]; got.Name != survivor.Name || got.Revision != survivor.Revision+1 {
			t.Errorf("with revision %d: got %+v", revision, got)
		}
	}
	entry := healthyEntry()
	for i := range entry.State.Membership.Members {
		if m := &entry.State.Membership.Members[i]; m.Name == survivor.Name {
			m.Answers, m.Revision = false, 0
		}
	}
	if got := newStatus(live, live, entry, fetchedMain).Members[1]; got.Health != v1alpha1.MemberUnreachable || got.Revision != survivor.Revision+1 {
		t.Errorf("when only this member is silent: got %+v", got)
	}
}

// TestVendorVersionIsNormalized checks that the status contains the version that members currently run, without a
// vendor's suffix.
func TestVendorVersionIsNormalized(t *testing.T) {
	live, entry := liveCluster(), healthyEntry()
	live.Status.Version = "3.4.0"
	for said, want := range map[string]string{"3.6.16+acme.1": "3.6.16", "3.6.16-k3s1": "3.6.16", "3.6.0-rc.1": "3.6.0-rc.1"} {
		for i := range entry.State.Membership.Members {
			entry.State.Membership.Members[i].Version = said
		}
		if status := newStatus(live, live, entry, fetchedMain); status.Version != want {
			t.Errorf("%s: %s", said, status.Version)
		}
	}
}

func TestErrorIsShownInStatus(t *testing.T) {
	live := liveCluster()
	entry := healthyEntry()
	entry.Decision = decide.Decision{Rule: "ApplyObjects", Verdict: decide.Act, Action: decide.ApplyObjects{}, Message: "Service a: missing"}
	entry.Error = "ApplyObjects: apply Service a: forbidden"
	condition := meta.FindStatusCondition(newStatus(live, live, entry, fetchedMain).Conditions, v1alpha1.ConditionReconciling)
	if condition == nil || condition.Message != "ApplyObjects: apply Service a: forbidden (Service a: missing)" {
		t.Errorf("got %+v", condition)
	}
}

// TestLongMessage checks that the message of a condition is truncated to the limit of the API, which rejects the whole
// status if a message is longer.
func TestLongMessage(t *testing.T) {
	entry := healthyEntry()
	entry.Decision.Message = strings.Repeat("ü", 20_000)
	status := New(liveCluster(), targets.Target{}, entry, reconcile.SourceStatus{Error: strings.Repeat("e", 40_000)})
	for _, c := range status.Conditions {
		if len(c.Message) > 32768 || !utf8.ValidString(c.Message) {
			t.Errorf("%s has %d bytes", c.Type, len(c.Message))
		}
	}
}

// TestDeclaredRevisionTime checks that the commit time is that of the declared revision. A new commit time alone does
// not cause the status to be written, and the time of a previous revision is not kept.
func TestDeclaredRevisionTime(t *testing.T) {
	live := liveCluster()
	at := func(revision string, committed time.Time) v1alpha1.EtcdClusterStatus {
		return newStatus(live, live, healthyEntry(), reconcile.SourceStatus{Source: "s", Revision: revision, Committed: committed})
	}
	early := noon.Add(-time.Hour).In(time.FixedZone("east", 7200))
	live.Status = at("main@sha1:1", early.Add(time.Millisecond))
	if got := live.Status.DeclaredRevisionTime; got == nil || got.Time != early.UTC() {
		t.Errorf("committed at %v, want %v", got, early.UTC())
	}
	for what, same := range map[string]time.Time{"another time": noon, "no time": {}} {
		if WorthWriting(live.Status, at("main@sha1:1", same)) {
			t.Errorf("%s of the same revision is news", what)
		}
	}
	if next := at("main@sha1:2", time.Time{}); next.DeclaredRevisionTime != nil || !WorthWriting(live.Status, next) {
		t.Errorf("the next revision was committed at %v", next.DeclaredRevisionTime)
	}
	if next := at("main@sha1:2", noon); next.DeclaredRevisionTime.Time != noon {
		t.Errorf("the next revision was committed at %v", next.DeclaredRevisionTime)
	}
	if unread := at("", time.Time{}); unread.DeclaredRevisionTime == nil || WorthWriting(live.Status, unread) {
		t.Errorf("of what declares it and was not read, %v is left", unread.DeclaredRevisionTime)
	}
	held := New(live, targets.Target{Held: "no longer declared"}, healthyEntry(), reconcile.SourceStatus{Source: "s", Revision: "main@sha1:2", Committed: noon})
	if held.DeclaredRevision != "main@sha1:1" || held.DeclaredRevisionTime.Time != early.UTC() {
		t.Errorf("it is held as declared by %s of %v", held.DeclaredRevision, held.DeclaredRevisionTime)
	}
}

// TestMovesRevision checks that a new revision of the same declaration alone is not news, but any other change is.
func TestMovesRevision(t *testing.T) {
	live := liveCluster()
	at := func(revision string) v1alpha1.EtcdClusterStatus {
		return newStatus(live, live, healthyEntry(), reconcile.SourceStatus{Source: "s", Revision: revision})
	}
	if MovesRevision(live.Status, at("main@sha1:1")) {
		t.Error("the first revision is not news")
	}
	live.Status = at("main@sha1:1")
	next := at("main@sha1:2")
	if !MovesRevision(live.Status, next) || !WorthWriting(live.Status, next) {
		t.Error("it counts as more than a new revision")
	}
	next.DeclaredRevisionTime = &metav1.Time{Time: noon}
	if !MovesRevision(live.Status, next) {
		t.Error("with a known commit time, it counts as more than a new revision")
	}
	for what, change := range map[string]func(*v1alpha1.EtcdClusterStatus){
		"rule":       func(s *v1alpha1.EtcdClusterStatus) { s.Rule = "Seal" },
		"source":     func(s *v1alpha1.EtcdClusterStatus) { s.DeclaredSource = "other" },
		"generation": func(s *v1alpha1.EtcdClusterStatus) { s.ObservedGeneration++ },
		"fetching": func(s *v1alpha1.EtcdClusterStatus) {
			meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSourceReady).Status = metav1.ConditionFalse
		},
	} {
		next := at("main@sha1:2")
		if change(&next); MovesRevision(live.Status, next) {
			t.Errorf("a different %s is not news", what)
		}
	}
}

// TestSmallSizeChangesAreNotWritten checks that a size is news only if it has changed by a tenth and by 1 MiB, or has
// become known or unknown.
func TestSmallSizeChangesAreNotWritten(t *testing.T) {
	for _, c := range []struct {
		was, is int64
		news    bool
	}{
		{20 << 10, 24 << 10, false}, // a page that etcd allocated for its own data
		{24 << 10, 16 << 10, false},
		{100 << 10, 2 << 20, true},
		{2 << 20, 100 << 10, true},
		{100 << 20, 105 << 20, false},
		{100 << 20, 111 << 20, true},
		{100 << 20, 89 << 20, true},
		{0, 20 << 10, true},
		{20 << 10, 0, true},
	} {
		live := liveCluster()
		entry := healthyEntry()
		entry.State.Membership.Members[1].DBSizeInUse = c.was
		live.Status = newStatus(live, live, entry, fetchedMain)
		entry.State.Membership.Members[1].DBSizeInUse = c.is
		if got := WorthWriting(live.Status, newStatus(live, live, entry, fetchedMain)); got != c.news {
			t.Errorf("%d bytes after %d are news: %t", c.is, c.was, got)
		}
	}
}
