package decide

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// TestEqual checks that records are unequal if any field differs.
func TestEqual(t *testing.T) {
	record := func() Record {
		return Record{
			Token: "t", ClusterID: 1, LogVersion: "3.6", CA: "CA", Members: []RecordedMember{{Ordinal: 0, Mode: Sealed}},
			Removed: []RemovedMember{{Ordinal: 1, VolumeUID: "v1"}}, Replaced: []Replacements{{2, 3, noon}},
		}
	}
	same := record()
	same.Replaced[0].Last = noon.In(time.FixedZone("", 3600))
	if !record().Equal(same) {
		t.Error("the record differs in a different time zone")
	}
	for what, change := range map[string]func(*Record){
		"token": func(r *Record) { r.Token = "u" }, "cluster ID": func(r *Record) { r.ClusterID = 2 },
		"log version": func(r *Record) { r.LogVersion = "3.5" }, "ca": func(r *Record) { r.CA = "" },
		"members": func(r *Record) { r.Members[0].ID = 2 }, "removed": func(r *Record) { r.Removed[0].VolumeUID = "v2" },
		"slot of a replacement":  func(r *Record) { r.Replaced[0].Ordinal = 1 },
		"number of replacements": func(r *Record) { r.Replaced[0].Times = 2 }, "time of the last replacement": func(r *Record) { r.Replaced[0].Last = noon.Add(1) },
	} {
		other := record()
		change(&other)
		if record().Equal(other) {
			t.Errorf("%s: the change is not detected", what)
		}
	}
}

// TestSlotIsRecordedOnce checks that a slot is recorded once, either for a member or as removed.
func TestSlotIsRecordedOnce(t *testing.T) {
	r := FoundingRecord("t", 3).WithRemoved(RemovedMember{Ordinal: 2, VolumeUID: "v2"}).WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: ""}).WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: "v1"})
	want := Record{Token: "t", Members: []RecordedMember{{Ordinal: 0, Mode: Founding}}, Removed: []RemovedMember{{Ordinal: 1, VolumeUID: "v1"}, {Ordinal: 2, VolumeUID: "v2"}}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v", r)
	}
	if n := r.With(RecordedMember{Ordinal: 4}).With(RecordedMember{Ordinal: 3}).Replicas(); n != 5 {
		t.Errorf("the highest member is a-4, but Kubernetes must run %d pods", n)
	}
	if n := (Record{}).Replicas(); n != 0 {
		t.Errorf("without members, Kubernetes must run %d pods", n)
	}
}

// TestCountReplacement checks that replacements are counted separately for each slot, and forgotten a day after the
// last replacement.
func TestCountReplacement(t *testing.T) {
	now := noon.Add(500 * time.Millisecond).In(time.FixedZone("", 3600))
	before := Record{Replaced: []Replacements{{1, 2, noon.Add(-24*time.Hour + time.Second)}, {2, 5, now.Add(-24 * time.Hour)}, {4, 1, noon}}}
	want := []Replacements{{1, 3, noon}, {4, 1, noon}}
	if got := before.countReplacement(1, now).Replaced; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	want = []Replacements{{1, 2, noon.Add(-24*time.Hour + time.Second)}, {2, 1, noon}, {4, 1, noon}}
	if got := before.countReplacement(2, now).Replaced; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := before.replacements(3); got != (Replacements{Ordinal: 3}) {
		t.Errorf("for a slot without a replacement: %+v", got)
	}
}

// TestLostRecordIsRecreated checks that a lost record is recreated from etcd's list or, without a list, from pods and
// volumes.
func TestLostRecordIsRecreated(t *testing.T) {
	lost := func(s *State) { s.Record = Record{} }
	unheard := func(s *State) {
		lost(s)
		s.Membership = Membership{}
		s.Replicas[2] = Replica{Ordinal: 2, Pod: PodAbsent}
	}
	for what, c := range map[string]struct {
		change   func(*State)
		token    string
		ordinals []int
	}{
		"from etcd's member list":     {func(s *State) { lost(s); s.Membership.Members[0].Name = "x-0"; s.Replicas = s.Replicas[:2] }, "t", []int{1, 2}},
		"from pods and volumes":       {unheard, "t", []int{0, 1}},
		"from a pod without a volume": {func(s *State) { unheard(s); s.Replicas = []Replica{{Ordinal: 1, Pod: PodFailing}} }, "fresh", []int{1}},
		"a volume has no token":       {func(s *State) { unheard(s); s.Replicas[0].VolumeToken = "" }, "t", []int{0, 1}},
		"a token is recorded":         {func(s *State) { unheard(s); s.Record.Token = "u" }, "u", []int{0, 1}},
	} {
		r := RequiredRecord(after(3, c.change), "fresh")
		var ordinals []int
		for _, m := range r.Members {
			ordinals = append(ordinals, m.Ordinal)
			if m.Mode != Sealed {
				t.Errorf("%s: %+v", what, m)
			}
		}
		if r.Token != c.token || !reflect.DeepEqual(ordinals, c.ordinals) || r.ClusterID != 0xc1 {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestMemberListAloneRecreatesRecord checks that, without a record and status, etcd's list shows which slots have
// members.
func TestMemberListAloneRecreatesRecord(t *testing.T) {
	s := after(3, func(s *State) {
		s.Record, s.ReportedClusterID, s.Replicas = Record{}, 0, nil
		s.Membership.Members[0].Name = "x-0"
	})
	r := RequiredRecord(s, "fresh")
	if len(r.Members) != 2 || r.Members[0].Ordinal != 1 || r.Members[1].Ordinal != 2 || r.ClusterID != 0 {
		t.Errorf("got %+v", r)
	}
	if r := RequiredRecord(State{Record: Record{CA: "CA1"}, Declared: Declared{Replicas: 1}}, "fresh"); r.CA != "CA1" || len(r.Members) != 1 {
		t.Errorf("before bootstrap, the record is %+v", r)
	}
}

// TestSealTakesLowerIDOfDuplicateMembers checks that, if a slot has two members, the member with the lower ID is
// sealed, which is also the member that listed returns.
func TestSealTakesLowerIDOfDuplicateMembers(t *testing.T) {
	s := after(1, func(s *State) {
		twin := s.Membership.Members[0]
		twin.ID = 0xb0
		s.Membership.Members = append(s.Membership.Members, twin)
	})
	if m, _ := SealedRecord(s, Seal{ClusterID: 0xc1, Members: 1}, "").Member(0); m.ID != 0xa0 {
		t.Errorf("the member with ID %s is sealed", m.ID)
	}
}

// TestSealRecordsInitialLogVersion checks that the recorded log version of a newly formed cluster is its initial
// version.
func TestSealRecordsInitialLogVersion(t *testing.T) {
	founded := func(s *State) {
		s.Record, s.ReportedClusterID = FoundingRecord("t", 3), 0
		s.Membership.Members[0].Version = ""
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"bootstrapped": {founded, "3.6"},
		"bootstrapped with an unreadable version": {func(s *State) { founded(s); s.Objects.RunsVersion = "x" }, ""},
		"formed earlier, the log version is kept": {func(s *State) { s.Record.LogVersion = "3.4" }, "3.4"},
	} {
		if got := SealedRecord(after(3, c.change), Seal{ClusterID: 0xc1, Members: 7}, "").LogVersion; got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestVoidRecoveryIsNotContinued checks that the Job of a void request is not continued when the cluster is stopped and
// started again.
func TestVoidRecoveryIsNotContinued(t *testing.T) {
	for void, takenUp := range map[string]bool{"": true, "w0": true, "w1": false} {
		s := State{
			Name: "a",
			Declared: Declared{Replicas: 1, Lifecycle: Running,
				Recovery: RecoveryOrder{ClusterID: 0xc1, Backup: "tuesday", Lost: 1, Word: "w1"}},
			Record: Record{Token: "t1", ClusterID: 0xc1, VoidRecovery: void,
				Members: []RecordedMember{{Mode: Sealed, ID: 0xa0, VolumeUID: "v0"}}},
			Replicas: []Replica{{Pod: PodAbsent, VolumeUID: "v0"}},
			Recovery: Recovery{Job: &RecoveryJob{ClusterID: 0xc1, From: "tuesday",
				VolumeJob: VolumeJob{VolumeUID: "v0", Phase: JobFailed}}},
		}
		if r := RequiredRecord(s, ""); r.Recovering() != takenUp {
			t.Errorf("void is %q: %+v", void, r.Recovery)
		}
	}
}

// TestIncompleteRecordIsCompleted checks that a record that was written only from the volumes is completed with members
// that the pass did not observe, until there is proof about its members.
func TestIncompleteRecordIsCompleted(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   int // number of members
	}{
		"a used claim is not recorded":        {func(*State) {}, 2},
		"etcd returns its member list":        {func(s *State) { s.Membership.Known = true }, 1},
		"a member's ID is recorded":           {func(s *State) { s.Record.Members[0].ID = 1 }, 1},
		"a member's volume is recorded":       {func(s *State) { s.Record.Members[0].VolumeUID = "v0" }, 1},
		"a member is joining":                 {func(s *State) { s.Record.Members[0].Mode = Joining }, 1},
		"the cluster is being recovered":      {func(s *State) { s.Record.Recovery.ClusterID = 1 }, 1},
		"the claim's member was removed":      {func(s *State) { s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: "v1"}) }, 1},
		"the claim belongs to a lost cluster": {func(s *State) { s.Replicas[1].LostCluster = 7 }, 1},
		"the claim was never used":            {func(s *State) { s.Replicas[1].LastUse = LastUse{} }, 1},
		"another cluster last used the claim": {func(s *State) { s.Replicas[1].LastUse.ClusterID = 7 }, 1},
		"the slot has no pod or volume":       {func(s *State) { s.Replicas[1].VolumeUID = "" }, 1},
	} {
		s := State{Name: "a", Record: Record{Token: "t", ClusterID: 1, Members: []RecordedMember{{Mode: Sealed}}},
			Replicas: []Replica{{Pod: PodAbsent, VolumeUID: "v0"}, {Ordinal: 1, Pod: PodAbsent, VolumeUID: "v1", LastUse: LastUse{ClusterID: 1}}}}
		c.change(&s)
		if got := len(s.complete(s.Record).Members); got != c.want {
			t.Errorf("%s: %d members, want %d", what, got, c.want)
		}
	}
}

// TestEditedRecordOfRestoredClusterIsDecided checks that Decide returns a decision if an initial member was added back to
// the record of a cluster created from a backup, and its claim is marked as belonging to a lost cluster.
func TestEditedRecordOfRestoredClusterIsDecided(t *testing.T) {
	var s State
	if err := json.Unmarshal([]byte(`{"name": "a", "now": "2026-08-01T12:00:00Z",
		"declared": {"replicas": 3, "version": "3.6.16", "lifecycle": "Running", "specHash": "h1", "restore": {"from": "x", "digest": "x"}},
		"record": {"token": "t1", "members": [{"ordinal": 0, "mode": "Founding", "id": "a0"}], "restoredFrom": "x", "uncompared": true},
		"objects": {"drift": ["StatefulSet a: changed at spec.replicas"], "runsVersion": "3.6.16", "runsHash": "h1"},
		"replicas": [{"ordinal": 0, "pod": "Absent", "volumeUID": "v0", "volumeToken": "t1", "lostCluster": "c9"}],
		"membership": {"why": "no member pod is running"},
		"restore": {"job": {"uid": "j1", "digest": "x", "volumeUID": "v0", "phase": "Succeeded", "from": "x", "restored": "x"}}}`), &s); err != nil {
		t.Fatal(err)
	}
	if d := Decide(s); d.Message == "" {
		t.Errorf("no decision: %+v", d)
	}
}
