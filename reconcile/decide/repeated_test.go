package decide_test

import (
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// TestRevertedActionComesLast checks that drift that returns after every pass does not prevent the
// replacement of a lost member, and that a Block names it once nothing else remains to be done.
func TestRevertedActionComesLast(t *testing.T) {
	w := &world{}
	for _, line := range []string{"cluster a", "set a-1 pod=Failing since=5m volume=none etcd=silent", "add drift=(Service a-client: changed at spec.ports by other)"} {
		if _, err := decidetest.Teller(w.tell).Line(line); err != nil {
			t.Fatal(err)
		}
	}
	s := w.State
	var kinds []string
	for range 6 {
		d := decide.Decide(s)
		kinds = append(kinds, decide.KindOf(d.Action))
		s.Repeated = decide.Repeats(s, d, true)
		s.Now = s.Now.Add(time.Minute)
	}
	if got := strings.Join(kinds, " "); got != "ApplyObjects ApplyObjects ApplyObjects RemoveMember RemoveMember RemoveMember" {
		t.Errorf("got %s", got)
	}
	d := decide.Decide(s)
	if d.Verdict != decide.Wait && d.Verdict != decide.Block || !strings.Contains(d.Message, "Service a-client") || !strings.Contains(d.Message, "RemoveMember keeps being reverted") {
		t.Errorf("got %s", d)
	}
	s.Now = s.Now.Add(10 * time.Minute)
	d = decide.Decide(s)
	if decide.KindOf(d.Action) != "ApplyObjects" {
		t.Errorf("after ten minutes: got %s", d)
	}
	if retried := decide.Retried(s, d); retried.Verdict != decide.Block || retried.Rule != "ApplyObjects" {
		t.Errorf("the Block does not stay: got %s", retried)
	}
	s.Objects.Drift = nil
	if list := decide.Repeats(s, decide.Decide(s), true); len(list) != 1 || list[0].Rule != "ReplaceMember" {
		t.Errorf("what has lasted is not forgotten: %+v", list)
	}
}

// TestDistinctActionsAreNotRepeats checks that actions of the same kind in a row, each for something else, do not
// count as one action that keeps being reverted: members that are sealed as they respond, and alarms that are disarmed
// in turn.
func TestDistinctActionsAreNotRepeats(t *testing.T) {
	s := decide.State{
		Name: "a", Declared: decide.Declared{Lifecycle: "Running", Replicas: 5, Version: "3.6.1", SpecHash: "h"},
		Objects:    decide.Objects{RunsVersion: "3.6.1", RunsHash: "h", RunsReplicas: 5},
		Record:     decide.Record{Token: "t"},
		Membership: decide.Membership{Known: true, ClusterID: 0xc1},
		Now:        time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for n := range 5 {
		name := s.ReplicaName(n)
		s.Record = s.Record.With(decide.RecordedMember{Ordinal: n, Mode: decide.Founding})
		s.Replicas = append(s.Replicas, decide.Replica{Ordinal: n, VolumeUID: "v-" + name, Pod: decide.PodReady})
		s.Membership.Members = append(s.Membership.Members, decide.Member{ID: decide.ID(n + 1), Name: name, Started: true})
	}
	for n := range 5 {
		s.Membership.Members[n].Answers = true
		d := decide.Decide(s)
		seal, ok := d.Action.(decide.Seal)
		if !ok || d.Verdict != decide.Act {
			t.Fatalf("once %s responds: got %s", s.ReplicaName(n), d)
		}
		s.Repeated = decide.Repeats(s, d, true)
		s.Record = decide.SealedRecord(s, seal, "")
	}

	s.Repeated = nil
	for n := range 5 {
		s.Membership.StaleAlarms = append(s.Membership.StaleAlarms, decide.Alarm{ID: decide.ID(0xd0 + n), Kind: decide.AlarmNoSpace})
	}
	for len(s.Membership.StaleAlarms) > 0 {
		d := decide.Decide(s)
		if decide.KindOf(d.Action) != "DisarmAlarm" {
			t.Fatalf("with %d alarms left: got %s", len(s.Membership.StaleAlarms), d)
		}
		s.Repeated = decide.Repeats(s, d, true)
		s.Membership.StaleAlarms = s.Membership.StaleAlarms[1:]
	}
}
