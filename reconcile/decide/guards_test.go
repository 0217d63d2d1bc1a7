package decide

import (
	"strings"
	"testing"
	"time"
)

type verdictCase struct {
	members int
	change  func(*State)
	want    Verdict // empty if the rule does not apply
}

// askVerdict evaluates a rule without earlier rules.
func askVerdict(t *testing.T, rule func(State) (Decision, bool), cases map[string]verdictCase) {
	t.Helper()
	for what, c := range cases {
		d, speaks := rule(after(c.members, c.change))
		if d.Verdict != c.want || speaks != (c.want != "") {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestGuardRulesInIsolation checks what each guard prevents by itself.
func TestGuardRulesInIsolation(t *testing.T) {
	askVerdict(t, invalidSpec, map[string]verdictCase{
		"no replicas": {1, declared(0), Block}, "one replica": {1, nil, ""}, "64 replicas": {1, declared(64), ""}, "65 replicas": {1, declared(65), Block},
	})
	askVerdict(t, clusterIDMismatch, map[string]verdictCase{
		"all IDs match":                {3, nil, ""},
		"no ID known":                  {3, func(s *State) { *s = State{} }, ""},
		"a pod reports a different ID": {3, func(s *State) { s.Replicas[2].ClusterID = 0xc2 }, Block},
		"only the status has an ID":    {3, func(s *State) { *s = State{ReportedClusterID: 0xc1} }, ""},
		"record and status differ":     {3, func(s *State) { *s = State{ReportedClusterID: 0xc1, Record: Record{ClusterID: 0xc2}} }, Block},
	})
	remains := func(change func(*State)) func(*State) {
		return both(func(s *State) {
			s.Record, s.Replicas = Record{}, []Replica{{Pod: PodAbsent, VolumeUID: "v0", VolumeTerminating: true}}
		}, change)
	}
	askVerdict(t, terminating, map[string]verdictCase{
		"nothing is being deleted":           {3, nil, ""},
		"an object is being deleted":         {3, func(s *State) { s.Objects.Terminating = []string{"x"} }, Wait},
		"everything left is being deleted":   {3, remains(func(*State) {}), Wait},
		"a terminating pod without a volume": {3, remains(func(s *State) { s.Replicas[0] = Replica{Pod: PodTerminating} }), Wait},
		"a different pod is kept":            {3, remains(func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, Pod: PodPending}) }), ""},
		"a different volume is kept":         {3, remains(func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, Pod: PodAbsent, VolumeUID: "v1"}) }), ""},
		"an empty slot":                      {3, remains(func(s *State) { s.Replicas[0] = Replica{Pod: PodAbsent} }), ""},
		"the members are recorded":           {3, remains(func(s *State) { s.Record = FoundingRecord("t", 1) }), ""},
	})
	lostCA := func(s *State) { s.Objects.Irreplaceable = []string{"Secret a-ca: missing"} }
	otherCA := func(s *State) { s.Record.CA, s.CA = "CA1", CA{Secret: "CA2", Proven: "CA1"} }
	scaled := func(s *State) { s.Objects.RunsReplicas = 0 }
	goingPods := func(s *State) {
		for i := range s.Replicas {
			s.Replicas[i].Pod = PodTerminating
		}
	}
	for name, c := range map[string]struct {
		rule   func(State) (Decision, bool)
		change func(*State)
	}{"CA lost": {caLost, lostCA}, "CA changed": {caChanged, otherCA}} {
		askVerdict(t, c.rule, map[string]verdictCase{
			name + ": healthy cluster":                   {3, nil, ""},
			name + ": pods running":                      {3, c.change, Block},
			name + ": scaled to 0, pods running":         {3, both(c.change, scaled), Block},
			name + ": pods terminating, not scaled to 0": {3, both(c.change, goingPods), Block},
			name + ": scaled to 0, pods terminating":     {3, both(c.change, scaled, goingPods), Wait},
		})
	}
	expired := func(c Certificate) func(*State) {
		return both(lostCA, func(s *State) { s.Certificates = []Certificate{c} })
	}
	for what, c := range map[string]slotCase{
		"expired": {expired(lasts("ca", true, 0)), true}, "valid": {expired(lasts("ca", true, 1)), false}, "a different certificate": {expired(lasts("a", false, 0)), false},
	} {
		if d, _ := caLost(after(3, c.change)); strings.Contains(d.Message, "restoring a backup would not help") != c.want {
			t.Errorf("CA lost, certificate %s: %s", what, d)
		}
	}
}

// TestQuorumLost checks that the rule waits for quorum if enough unresponsive voters may come up by themselves.
func TestQuorumLost(t *testing.T) {
	lost := func(change func(*State)) func(*State) { return both(silence(1, 2), unlisted, change) }
	keep := func(*State) {}
	unrecorded := func(s *State) { s.Record.Members = s.Record.Members[:1] }
	askVerdict(t, quorumLost, map[string]verdictCase{
		"healthy":                          {3, unlisted, ""},
		"member list known":                {3, silence(1, 2), ""},
		"no member is listed":              {3, lost(func(s *State) { s.Membership.Members = nil }), ""},
		"both may come up":                 {3, lost(keep), Wait},
		"one may come up":                  {3, lost(func(s *State) { s.Replicas[2].Stranded = "x" }), Wait},
		"neither may come up":              {3, lost(func(s *State) { s.Replicas[1].Stranded, s.Replicas[2].Stranded = "x", "x" }), Block},
		"unknown members":                  {3, lost(both(stranger(1), stranger(2))), Block},
		"not recorded, but replicas exist": {3, lost(unrecorded), Wait},
		"not recorded, no replicas":        {3, lost(both(unrecorded, func(s *State) { s.Replicas = s.Replicas[:1] })), Block},
		"recorded, not created yet": {3, lost(func(s *State) {
			s.Replicas = s.Replicas[:1]
			s.Record.Members[1].VolumeUID, s.Record.Members[2].VolumeUID = "", ""
		}), Wait},
	})
	unknown := func(change func(*State)) func(*State) {
		return both(func(s *State) { s.Membership = Membership{}; s.down(PodFailing, time.Hour) }, change)
	}
	failing := func(s *State) {
		for i := range s.Replicas {
			s.Replicas[i].Pod, s.Replicas[i].PodSince = PodFailing, noon.Add(-time.Hour)
		}
	}
	askVerdict(t, membershipUnknown, map[string]verdictCase{
		"member list known":       {3, nil, ""},
		"never formed":            {3, unknown(founded), ""},
		"member list unknown":     {3, unknown(keep), Wait},
		"member list forbidden":   {3, unknown(func(s *State) { s.Membership.Forbidden = "x" }), Block},
		"member list disputed":    {3, unknown(disputed), Block},
		"member list unconfirmed": {3, unknown(unconfirmed), Wait},
		"member list unconfirmed, unknown member": {3, both(stranger(1), func(s *State) {
			s.Membership.Known, s.Membership.Unconfirmed = false, true
		}), Block},
		"no record and no replicas":      {3, unknown(func(s *State) { s.Record, s.Replicas = Record{}, nil }), Block},
		"pods do not come up":            {3, unknown(failing), Block},
		"pods do not come up, no record": {3, unknown(both(failing, func(s *State) { s.Record = Record{} })), Wait},
	})
}

// TestUnconfirmedListNamesWhatToDo checks that a Block because of an unconfirmed member list names unknown members, which
// Quorate cannot query, and the claims that are Terminating: restarting their pods destroys data.
func TestUnconfirmedListNamesWhatToDo(t *testing.T) {
	strange := Decide(after(3, func(s *State) {
		stranger(1)(s)
		s.Membership.Known, s.Membership.Unconfirmed = false, true
	}))
	if strange.Verdict != Block || !strings.Contains(strange.Message, "etcdctl member remove") {
		t.Errorf("got %s", strange)
	}
	different := Decide(after(3, func(s *State) {
		disputed(s)
		s.Membership.Known, s.Membership.Members[2].Answers = false, false
		s.Replicas[2].VolumeUID, s.Replicas[2].Pod = "", PodAbsent
		s.Replicas[1].VolumeTerminating = true
	}))
	if !strings.Contains(different.Message, "kubectl delete pod") || !strings.Contains(different.Message, "Terminating") {
		t.Errorf("got %s", different)
	}
}

// TestUnknownMembersAreCounted checks that the instruction to remove unknown members matches their number.
func TestUnknownMembersAreCounted(t *testing.T) {
	one, two := stranger(3), both(stranger(3), stranger(4))
	hidden := func(s *State) { s.Membership.Known, s.Membership.Unconfirmed = false, true }
	for _, c := range []struct {
		rule   func(State) (Decision, bool)
		change func(*State)
		want   string
	}{
		{membershipMismatch, one, ". Remove it manually with"},
		{membershipMismatch, two, ". Remove them manually with"},
		{membershipUnknown, both(one, hidden), ". Quorate cannot query it. Remove it manually with"},
		{membershipUnknown, both(two, hidden), ". Quorate cannot query them. Remove them manually with"},
	} {
		if d, _ := c.rule(after(5, c.change)); d.Verdict != Block || !strings.Contains(d.Message, c.want) {
			t.Errorf("want %q: %s", c.want, d)
		}
	}
}

// forgottenFor sets the state of a cluster that exists only in git.
func forgottenFor(s *State, lifecycle string) {
	*s = State{Name: "a", Now: noon, Declared: Declared{Replicas: 3, Version: "3.6.16", Lifecycle: Lifecycle(lifecycle)}}
}

// TestWaitForFormation checks the waits before a cluster has formed.
func TestWaitForFormation(t *testing.T) {
	known := func(s *State) { s.Membership.Known = true }
	askVerdict(t, waitForFormation, map[string]verdictCase{
		"formed":                               {3, unlisted, ""},
		"bootstrapping":                        {3, founded, Wait},
		"bootstrapping, member list known":     {3, both(founded, known), ""},
		"bootstrapping, member list forbidden": {3, both(founded, func(s *State) { s.Membership.Forbidden = "x" }), Block},
		"bootstrapping, pods failing":          {3, both(func(s *State) { s.down(PodFailing, time.Hour, 0, 1) }, founded), Block},
	})
	for phase, want := range map[PodPhase]time.Duration{PodReady: 200 * time.Millisecond, PodStarting: 200 * time.Millisecond, PodPending: time.Second, PodFailing: time.Second} {
		s := after(3, func(s *State) { s.down(PodPending, 0, 0, 1, 2); s.Replicas[1].Pod = phase })
		if got := s.untilFormation(); got != want {
			t.Errorf("%s: checked again in %s", phase, got)
		}
	}
	for what, c := range map[string]struct {
		objects Objects
		want    bool
	}{"none": {Objects{}, false}, "a version": {Objects{RunsVersion: "v"}, true}, "a spec hash": {Objects{RunsHash: "h"}, true}, "a replica": {Objects{RunsReplicas: 1}, true}} {
		if got := (State{Objects: c.objects}).hasStatefulSet(); got != c.want {
			t.Errorf("%s: StatefulSet exists: %t", what, got)
		}
	}
	askVerdict(t, bootstrap, map[string]verdictCase{
		"nothing exists":                   {3, func(s *State) { forgottenFor(s, "Running") }, Act},
		"nothing exists, cluster stopped":  {3, func(s *State) { forgottenFor(s, "Stopped") }, ""},
		"bootstrapping":                    {3, founded, ""},
		"bootstrapping, an object missing": {3, both(founded, drifts), Act},
		"formed":                           {3, drifts, ""},
	})
	unsealed := recordedAs(RecordedMember{Mode: Founding})
	askAlone(t, seal, map[string]ruleCase{
		"all sealed":                              {3, nil, nil},
		"one not sealed":                          {3, unsealed, Seal{0xc1, 2}},
		"one not sealed, member list unknown":     {3, both(unsealed, unlisted), nil},
		"one not sealed, no cluster ID":           {3, both(unsealed, func(s *State) { s.Membership.ClusterID = 0 }), nil},
		"one not sealed, different cluster":       {3, both(unsealed, func(s *State) { s.Membership.ClusterID = 0xc2 }), nil},
		"one not sealed, not started":             {3, both(unsealed, unstarted), nil},
		"one not sealed, not listed":              {3, both(func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 0, Mode: Founding}) }, without(0), stranger(0)), nil},
		"cluster ID not recorded":                 {3, func(s *State) { s.Record.ClusterID = 0 }, Seal{0xc1, 0}},
		"no member recorded":                      {3, func(s *State) { s.Record, s.Replicas, s.Membership.Members = Record{}, nil, nil }, nil},
		"one member, cluster ID not recorded":     {1, func(s *State) { s.Record.ClusterID = 0 }, Seal{0xc1, 0}},
		"different volume":                        {3, changed(another), Seal{0xc1, 2}},
		"different volume, member not responding": {3, slot1(PodFailing, 0, another), nil},
		"volume gone":                             {3, changed(gone), nil},
		"different member ID":                     {3, func(s *State) { s.Membership.Members[1].ID = 0xb1 }, Seal{0xc1, 2}},
	})
}

// TestClaimsOfDifferentClustersBlock checks that nothing starts if only claims are left and they name different clusters,
// and that claims without a volume, a user or a doubt are not named.
func TestClaimsOfDifferentClustersBlock(t *testing.T) {
	other := func(change func(*Replica)) func(*State) {
		return func(s *State) {
			s.Replicas[2].LastUse.ClusterID = 1
			change(&s.Replicas[2])
		}
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"all name one cluster":                    {func(*State) {}, ""},
		"one names a different cluster":           {other(func(*Replica) {}), "data-a-0 by c1, data-a-1 by c1 and data-a-2 by 1"},
		"one names no cluster":                    {other(func(r *Replica) { r.LastUse.ClusterID = 0 }), ""},
		"the differing claim has no volume":       {other(func(r *Replica) { r.VolumeUID = "" }), ""},
		"the differing claim is marked":           {other(func(r *Replica) { r.LostCluster = 1 }), ""},
		"one names a different cluster, one none": {both(other(func(*Replica) {}), func(s *State) { s.Replicas[1].LastUse.ClusterID = 0 }), "data-a-0 by c1 and data-a-2 by 1"},
	} {
		s := after(3, both(nameless, c.change))
		d, applies := s.usedByDifferent()
		if applies != (c.want != "") || !strings.Contains(d.Message, c.want) || applies && d.Verdict != Block {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestOnlyMembersOnOldDataAreNamed checks which members are said to have started on old data during bootstrap.
func TestOnlyMembersOnOldDataAreNamed(t *testing.T) {
	s := after(3, func(s *State) {
		s.Record, s.ReportedClusterID, s.Membership, s.FoundingID = FoundingRecord("t", 3), 0, Membership{}, 0xc1
		s.Replicas[0].ClusterID, s.Replicas[1].ClusterID, s.Replicas[2].ClusterID = 0xc1, 0, 1
	})
	if text := s.describeOldData(); !strings.HasPrefix(text, ". a-2 started on data that existed before") {
		t.Errorf("%q", text)
	}
}

// TestListOfTooFewRecordedVotersCanBeConfirmed checks that the Block names the annotation that confirms the list.
func TestListOfTooFewRecordedVotersCanBeConfirmed(t *testing.T) {
	s := after(3, both(without(1, 2), func(s *State) { s.Membership.Known, s.Membership.Unrecorded = false, true }))
	if d, _ := membershipUnknown(s); d.Verdict != Block || !strings.Contains(d.Message, s.ListToConfirm()) {
		t.Errorf("%s", d)
	}
}
