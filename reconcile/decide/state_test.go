package decide

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestAnySignOfFormationPreventsBootstrap checks that any single sign is enough to show that a cluster has formed, so
// that it is not bootstrapped again.
func TestAnySignOfFormationPreventsBootstrap(t *testing.T) {
	record := FoundingRecord("t", 1)
	for name, c := range map[string]struct {
		state            State
		formed, founding bool
	}{
		"nothing":                                {State{}, false, false},
		"an empty slot":                          {State{Replicas: []Replica{{Pod: PodAbsent}}}, false, false},
		"a bootstrap record":                     {State{Record: record}, false, true},
		"a bootstrap record, a pod and a volume": {State{Record: record, Replicas: []Replica{{Pod: PodReady, VolumeUID: "v"}}, Objects: Objects{RunsHash: "h", RunsVersion: "v"}}, false, true},
		"a bootstrap record, a pod responds":     {State{Record: record, Replicas: []Replica{{Pod: PodReady, ClusterID: 1}}}, true, true},
		"a bootstrap record, a member list":      {State{Record: record, Membership: Membership{Members: []Member{{}}}}, true, true},
		"a bootstrap record, etcd's cluster ID":  {State{Record: record, Membership: Membership{ClusterID: 1}}, true, true},
		"a recorded cluster ID":                  {State{Record: Record{Token: "t", ClusterID: 1, Members: record.Members}}, true, false},
		"a cluster ID in the status":             {State{Record: record, ReportedClusterID: 1}, true, false},
		"a sealed member":                        {State{Record: record.With(RecordedMember{Ordinal: 1, Mode: Sealed})}, true, false},
		"a joining member":                       {State{Record: record.With(RecordedMember{Ordinal: 1, Mode: Joining})}, true, false},
		"a volume":                               {State{Replicas: []Replica{{Pod: PodAbsent, VolumeUID: "v"}}}, true, false},
		"a pod":                                  {State{Replicas: []Replica{{Pod: PodPending}}}, true, false},
		"a StatefulSet's version":                {State{Objects: Objects{RunsVersion: "v"}}, true, false},
		"a StatefulSet's spec hash":              {State{Objects: Objects{RunsHash: "h"}}, true, false},
		"only a recorded cluster ID":             {State{Record: Record{Token: "t", ClusterID: 1}}, true, false},
		"only a cluster ID in the status":        {State{ReportedClusterID: 1}, true, false},
	} {
		if got := c.state.Formed(); got != c.formed {
			t.Errorf("%s: formed is %t", name, got)
		}
		if got := c.state.founding(); got != c.founding {
			t.Errorf("%s: founding is %t", name, got)
		}
		c.state.Declared = Declared{Replicas: 1, Lifecycle: "Running"}
		c.state.Objects.Drift = []string{"Service a: missing"}
		if _, founds := Decide(c.state).Action.(Bootstrap); founds && c.formed {
			t.Errorf("%s: it is bootstrapped again", name)
		}
	}
}

// TestRestoredRecordOfBootstrapCountsAsLost checks that a claim that etcd has used, or a recovery Job on an existing
// claim, shows that the cluster had formed, although the record is as old as the bootstrap.
func TestRestoredRecordOfBootstrapCountsAsLost(t *testing.T) {
	job := func(volume string) func(*State) {
		return func(s *State) { s.Recovery.Job = &RecoveryJob{VolumeJob: VolumeJob{VolumeUID: volume}} }
	}
	claim := func(change func(*Replica)) func(*State) { return func(s *State) { change(&s.Replicas[0]) } }
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"bootstrap":                       {func(*State) {}, false},
		"a claim that etcd has used":      {claim(func(r *Replica) { r.LastUse.ClusterID = 1 }), true},
		"a claim of a lost cluster":       {claim(func(r *Replica) { r.LostCluster = 1 }), true},
		"a recovery Job on the claim":     {job("v"), true},
		"a recovery Job on another claim": {job("w"), false},
		"a recovery Job, no claim":        {both(job(""), claim(gone)), false},
		"a newer record":                  {func(s *State) { s.Record.ClusterID = 1; s.Replicas[0].LastUse.ClusterID = 1 }, false},
	} {
		s := State{Record: FoundingRecord("t", 1), Replicas: []Replica{{Pod: PodAbsent, VolumeUID: "v"}}}
		c.change(&s)
		if got := s.formedBefore(); got != c.want {
			t.Errorf("%s: formed before is %t", what, got)
		}
		if s.recordLost() != c.want || s.founding() == c.want && s.recordsFounding() || c.want && !s.Formed() {
			t.Errorf("%s: lost is %t, bootstrap is %t, formed is %t", what, s.recordLost(), s.founding(), s.Formed())
		}
	}
	if !(State{}).recordLost() {
		t.Error("a missing record does not count as lost")
	}
}

// TestClientsWaitForCluster checks when the client Service is not open: while a member may start on an empty volume,
// and until data that was restored or recovered is proven.
func TestClientsWaitForCluster(t *testing.T) {
	formed := FoundingRecord("t", 1).With(RecordedMember{Mode: Sealed})
	formed.ClusterID = 1
	for what, c := range map[string]struct {
		change          func(*Record)
		closed, clients bool
	}{
		"a formed cluster":               {func(*Record) {}, false, false},
		"a member may bootstrap":         {func(r *Record) { r.Members[0].Mode = Founding }, true, true},
		"being restored":                 {func(r *Record) { r.Members[0].Mode = Restoring }, true, true},
		"restored, and not proven":       {func(r *Record) { r.RestoredFrom, r.ClusterID = "b", 0 }, true, true},
		"restored, and proven":           {func(r *Record) { r.RestoredFrom = "b" }, false, false},
		"being recovered":                {func(r *Record) { r.Recovery.ClusterID = 1 }, false, true},
		"recovered from another cluster": {func(r *Record) { r.Recovery.ClusterID = 2 }, false, false},
	} {
		r := formed.With(formed.Members[0])
		c.change(&r)
		if r.Closed() != c.closed || (State{Record: r}).ClosedToClients() != c.clients {
			t.Errorf("%s: Service closed is %t, closed to clients is %t", what, r.Closed(), State{Record: r}.ClosedToClients())
		}
	}
}

func TestNothingRuns(t *testing.T) {
	for name, s := range map[string]State{
		"a record":             {Record: FoundingRecord("t", 1)},
		"a StatefulSet":        {Objects: Objects{RunsVersion: "v"}},
		"a pod":                {Replicas: []Replica{{Pod: PodTerminating}}},
		"a member":             {Membership: Membership{Members: []Member{{}}}},
		"a declaration to run": {Declared: Declared{Lifecycle: "Running"}},
	} {
		if d, speaks := nothingRuns(s); speaks {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestSealedRecord checks that only started members are sealed, even if the action names others, and that only
// responding members are recorded with their ID and volume.
func TestSealedRecord(t *testing.T) {
	s := State{Name: "a", Record: FoundingRecord("t", 4)}
	s.Membership = Membership{Known: true, ClusterID: 7, Members: []Member{
		{ID: 10, Name: "a-0", Started: true, Answers: true},
		{ID: 11, Name: "a-1", Started: true},
		{ID: 12, Name: "a-2"},
		{ID: 13, Name: "a-3", Started: true, Answers: true},
		{ID: 14, Name: "stranger", Started: true, Answers: true},
	}}
	for n := range 4 {
		s.Replicas = append(s.Replicas, Replica{Ordinal: n, VolumeUID: "v" + string(rune('0'+n))})
	}
	got := SealedRecord(s, Seal{ClusterID: 7, Members: Ordinals(0).With(0).With(1).With(2)}, "fresh")
	want := `{"token":"t","clusterID":"7","members":[{"ordinal":0,"mode":"Sealed","id":"a","volumeUID":"v0"},` +
		`{"ordinal":1,"mode":"Sealed"},{"ordinal":2,"mode":"Founding"},{"ordinal":3,"mode":"Founding"}]}`
	if text, _ := json.Marshal(got); string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	// etcd does not forbid two members with the same name; the record must not depend on their order.
	s.Membership.Members = append(s.Membership.Members, Member{ID: 15, Name: "a-0", Started: true, Answers: true})
	one := SealedRecord(s, Seal{ClusterID: 7, Members: 1}, "fresh")
	slices.Reverse(s.Membership.Members)
	if other := SealedRecord(s, Seal{ClusterID: 7, Members: 1}, "fresh"); !reflect.DeepEqual(one, other) {
		t.Errorf("in a different order, %v is sealed, not %v", other, one)
	}
}

func TestExplain(t *testing.T) {
	healthy := Member{Name: "a-0", Started: true, Answers: true}
	ready := Replica{Pod: PodReady, VolumeUID: "v"}
	for want, c := range map[string]struct {
		change func(*Member, *Replica, *RecordedMember)
	}{
		"":                                      {func(*Member, *Replica, *RecordedMember) {}},
		"is not one of this cluster's replicas": {func(m *Member, _ *Replica, _ *RecordedMember) { m.Name = "b-0" }},
		"lost its volume":                       {func(m *Member, r *Replica, _ *RecordedMember) { m.Answers, r.VolumeUID = false, "w" }},
		"is not responding (pod failing: x)": {func(m *Member, r *Replica, _ *RecordedMember) {
			m.Answers, r.Pod, r.PodMessage = false, PodFailing, "x"
		}},
		"is not responding (pod ready)":         {func(m *Member, r *Replica, _ *RecordedMember) { m.Answers, r.PodSpecHash = false, "h0" }},
		"has NOSPACE and CORRUPT alarms":        {func(m *Member, _ *Replica, _ *RecordedMember) { m.Alarms = []AlarmKind{"NOSPACE", "CORRUPT"} }},
		"is a learner":                          {func(m *Member, _ *Replica, _ *RecordedMember) { m.Learner = true }},
		"has not published its client URLs yet": {func(m *Member, _ *Replica, _ *RecordedMember) { m.Started = false }},
		"is not sealed yet":                     {func(_ *Member, _ *Replica, r *RecordedMember) { r.Mode = Founding }},
		"responds, but its pod is not ready (pod starting)": {func(_ *Member, r *Replica, _ *RecordedMember) {
			r.Pod, r.PodSpecHash, r.PodVersion = PodStarting, "h", "1"
		}},
		"responds, but its pod is not ready (pod pending: no marks)": {func(_ *Member, r *Replica, _ *RecordedMember) {
			r.Pod, r.PodMessage = PodPending, "no marks"
		}},
		"responds, but its pod is not ready (pod starting, created from": {func(_ *Member, r *Replica, _ *RecordedMember) {
			r.Pod, r.PodSpecHash, r.PodVersion = PodStarting, "h", "0"
		}},
	} {
		m, r, recorded := healthy, ready, RecordedMember{Mode: Sealed, VolumeUID: "v"}
		c.change(&m, &r, &recorded)
		s := State{Name: "a", Declared: Declared{SpecHash: "h", Version: "1"}, Record: Record{Members: []RecordedMember{recorded}}, Replicas: []Replica{r}}
		if got := s.Explain(m); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	// A member that responds has not lost its volume, regardless of the record.
	s := State{Name: "a", Record: Record{Members: []RecordedMember{{Mode: Sealed, VolumeUID: "v"}}}, Replicas: []Replica{{Pod: PodReady, VolumeUID: "w"}}}
	if got := s.Explain(healthy); got != "" {
		t.Errorf("got %q for a member that responds on another volume", got)
	}
}

func TestQuorum(t *testing.T) {
	for n, want := range []int{1, 1, 2, 2, 3, 3, 4, 4} {
		if got := Quorum(n); got != want {
			t.Errorf("Quorum(%d) is %d", n, got)
		}
	}
	voter, silent, learner := Member{Answers: true}, Member{}, Member{Answers: true, Learner: true}
	for _, c := range []struct {
		want    bool
		members []Member
	}{
		{false, nil},
		{false, []Member{learner}},
		{true, []Member{voter}},
		{false, []Member{voter, silent}},
		{true, []Member{voter, voter, silent}},
		{false, []Member{voter, silent, silent, learner, learner}},
		{true, []Member{voter, {Learner: true}, {Learner: true}}},
	} {
		if got := (Membership{Members: c.members}).HasQuorum(); got != c.want {
			t.Errorf("quorum of %v is %t", c.members, got)
		}
	}
}

func TestOrdinals(t *testing.T) {
	set := Ordinals(0).With(10).With(2).With(63).With(64).With(-1)
	if got := set.String(); got != "2,10,63" || set.Len() != 3 {
		t.Errorf("got %s", got)
	}
	for n, want := range map[int]bool{-1: false, 0: false, 2: true, 63: true, 64: false, 1000: false} {
		if set.Has(n) != want {
			t.Errorf("Has(%d) is %t", n, !want)
		}
	}
}

// TestActionsPrintOnOneLine checks that decisions and actions are printed on one line, with IDs in etcd's format.
func TestActionsPrintOnOneLine(t *testing.T) {
	for want, got := range map[string]interface{ String() string }{
		"Act Seal Seal members=0,2 cluster=c1: because": Decision{Rule: "Seal", Verdict: Act, Action: Seal{ClusterID: 0xc1, Members: 5}, Message: "because"},
		"Done Converged: as declared":                   Decision{Rule: "Converged", Verdict: Done, Message: "as declared"},
		"Bootstrap replicas=3":                          Bootstrap{Replicas: 3},
		"ApplyObjects":                                  ApplyObjects{},
		"StartRollout version=3.7.3 hash=h2":            StartRollout{"3.7.3", "h2"},
		"EnableDowngrade 3.6":                           EnableDowngrade{"3.6"},
		"CancelDowngrade 3.6":                           CancelDowngrade{"3.6"},
		"DisarmAlarm NOSPACE of ff":                     DisarmAlarm{255, "NOSPACE"},
		"Defragment a-1 (ff)":                           Defragment{255, "a-1"},
		"DeleteObjects":                                 DeleteObjects{},
		"RenewCertificates":                             RenewCertificates{},
		"StopPods":                                      StopPods{},
		"StopReplicas 0,1 cluster=c1":                   StopReplicas{3, 0xc1},
		"Declare":                                       Declare{},
		"AddLearner 3 https://a-3.a:2380":               AddLearner{3, "https://a-3.a:2380"},
		"PromoteLearner a-3 (ff)":                       PromoteLearner{255, "a-3"},
		"RemoveMember a-3 (ff)":                         RemoveMember{ID: 255, Name: "a-3"},
		"RemoveMember a-3 (ff) Silence":                 RemoveMember{255, "a-3", LossEvidence{Loss: Silence}},
		"RemoveMember a-3 (ff) VolumeLost v3":           RemoveMember{255, "a-3", LossEvidence{VolumeLost, "v3"}},
		"MoveLeader a0 to a1":                           MoveLeader{0xa0, 0xa1},
		"RestartReplica 1 (pod p1)":                     RestartReplica{1, "p1"},
		"DeleteVolume 1 (v1)":                           DeleteVolume{1, "v1"},
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var id ID
	if err := id.UnmarshalText([]byte("xyz")); err == nil || id != 0 {
		t.Errorf("xyz is read as %s, %v", id, err)
	}
	if err := id.UnmarshalText([]byte("ffffffffffffffff")); err != nil || id.String() != "ffffffffffffffff" {
		t.Errorf("the highest ID is read as %s, %v", id, err)
	}
}

// TestWantsOtherPods checks that the template of new pods must change only if a StatefulSet creates pods that differ
// from the declaration, for a cluster that may have formed.
func TestWantsOtherPods(t *testing.T) {
	founding, formed, joining := FoundingRecord("t", 3), FoundingRecord("t", 3), FoundingRecord("t", 3)
	formed.ClusterID, joining.Members[2].Mode = 1, Joining
	for name, test := range map[string]struct {
		record   Record
		runs     string
		reported ID
		want     bool
	}{
		"formed":             {formed, "3.5.35", 0, true},
		"up to date":         {formed, "3.6.16", 0, false},
		"no StatefulSet":     {formed, "", 0, false},
		"a bootstrap record": {founding, "3.5.35", 0, false},
		"a bootstrap record, cluster ID in status": {founding, "3.5.35", 1, true},
		"a member is joining":                      {joining, "3.5.35", 0, true},
		"no record":                                {Record{}, "3.5.35", 0, true},
	} {
		s := State{Declared: Declared{Version: "3.6.16"}, Record: test.record, ReportedClusterID: test.reported}
		s.Objects.RunsVersion = test.runs
		if got := s.WantsOtherPods(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
