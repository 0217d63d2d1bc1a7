package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// TestRevertedActionComesLast checks that drift that returns after every pass does not prevent the replacement of a
// lost member, and that a Block names the drift once nothing else remains to be done.
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
		t.Errorf("the Block is not kept: got %s", retried)
	}
	s.Objects.Drift, s.Now = nil, s.Now.Add(time.Hour)
	if list := decide.Repeats(s, decide.Decide(s), true); len(list) != 1 || list[0].Rule != "ReplaceMember" {
		t.Errorf("an old entry is not forgotten: %+v", list)
	}
}

// TestDistinctActionsAreNotRepeats checks that consecutive actions of the same kind on different objects do not count
// as one action that keeps being reverted: for example, sealing members as they respond, or disarming alarms in turn.
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

// TestDelayedRepairComesFirst checks that a lost member is replaced although the objects differ in a new way after
// every pass: another tenant reverts them with ever-changing field managers, whose names are part of the differences.
func TestDelayedRepairComesFirst(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set a-1 etcd=silent pod=Failing volume=v9")
	var repairs []int
	for pass := range 20 {
		w.Objects.Drift = []string{fmt.Sprint("Service a-client: changed at spec.ports by m", pass)}
		d := decide.Decide(w.State)
		if d.Rule == "ReplaceMember" {
			repairs = append(repairs, pass)
		}
		w.Repeated = decide.Repeats(w.State, d, true)
		w.Now = w.Now.Add(time.Second)
	}
	if !slices.Equal(repairs, []int{5, 11, 17}) {
		t.Errorf("the member is replaced in passes %v", repairs)
	}
}

// TestDelayOfRepairIsForgotten checks that a repair is not put first if it has not been delayed recently, or if it
// would follow a Wait or a Block.
func TestDelayOfRepairIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		ago   time.Duration
		lines []string
		want  string
	}{
		"recently":                {time.Second, nil, "ReplaceMember"},
		"long ago":                {10 * time.Minute, nil, "ApplyObjects"},
		"in the future":           {-time.Hour, nil, "ApplyObjects"},
		"a Block applies as well": {time.Second, []string{"add foreign=(Service a)"}, "ForeignObjects"},
		"nothing to replace":      {time.Second, nil, "ApplyObjects"},
		"etcd has lost quorum":    {time.Second, []string{"set a-2 etcd=silent pod=Failing"}, "ApplyObjects"},
	} {
		w := &world{}
		say(t, w, "cluster a", "set a-1 etcd=silent pod=Failing volume=v9", "add drift=(Service a-client: changed)")
		if name == "nothing to replace" {
			w = &world{}
			say(t, w, "cluster a", "add drift=(Service a-client: changed)")
		}
		say(t, w, c.lines...)
		w.Repeated = []decide.Repeated{{Rule: "ReplaceMember", What: "preempted", Times: 5, Last: w.Now.Add(-c.ago)}}
		d := decide.Decide(w.State)
		if d.Rule != c.want {
			t.Errorf("%s: got %s", name, d)
		}
		if delays := strings.Contains(d.Message, "ApplyObjects follows"); delays != (d.Rule == "ReplaceMember") {
			t.Errorf("%s: got %s", name, d)
		}
	}
}
