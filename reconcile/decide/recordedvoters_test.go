package decide

import (
	"fmt"
	"testing"
)

// TestRecordedVoters checks which recorded members must confirm a member list.
func TestRecordedVoters(t *testing.T) {
	recorded := func(change func(*RecordedMember)) func(*State) {
		return func(s *State) {
			m, _ := s.Record.Member(1)
			change(&m)
			s.Record = s.Record.With(m)
		}
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"sealed":                 {nil, "[0 1 2]"},
		"an initial member":      {recorded(func(m *RecordedMember) { *m = RecordedMember{Ordinal: 1, Mode: Founding} }), "[0 1 2]"},
		"joining":                {recorded(func(m *RecordedMember) { *m = RecordedMember{Ordinal: 1, Mode: Joining} }), "[0 2]"},
		"a learner":              {recorded(func(m *RecordedMember) { m.Learner = true }), "[0 2]"},
		"about to be removed":    {recorded(func(m *RecordedMember) { m.Leaving = true }), "[0 2]"},
		"recreated from volumes": {recorded(func(m *RecordedMember) { m.ID, m.VolumeUID = 0, "" }), "[0 2]"},
		"without a record":       {func(s *State) { s.Record = Record{} }, "[]"},
	} {
		voters := []int{}
		for _, m := range after(3, c.change).RecordedVoters() {
			voters = append(voters, m.Ordinal)
		}
		if got := fmt.Sprint(voters); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// TestLearnerStaysALearnerInTheRecordUntilItVotes checks that the record notes that a sealed member is a learner, clears
// this once etcd lists the member as a voter, and never marks a recorded voter as a learner.
func TestLearnerStaysALearnerInTheRecordUntilItVotes(t *testing.T) {
	learns := func(s *State) { s.Membership.Members[2].Learner = true }
	joins := func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 2, Mode: Joining}) }
	sealedAs := func(s State) bool {
		m, _ := SealedRecord(s, Seal{Members: Ordinals(0).With(2), ClusterID: s.Record.ClusterID}, "").Member(2)
		return m.Learner
	}
	if !sealedAs(after(3, both(learns, joins))) || sealedAs(after(3, learns)) || sealedAs(after(3, joins)) {
		t.Error("only a new member that etcd lists as a learner is recorded as a learner")
	}
	was := after(3, func(s *State) {
		m, _ := s.Record.Member(2)
		m.Learner = true
		s.Record = s.Record.With(m)
	})
	if m, _ := RequiredRecord(was, "").Member(2); m.Learner {
		t.Error("a voter is still recorded as a learner")
	}
	learns(&was)
	if m, _ := RequiredRecord(was, "").Member(2); !m.Learner {
		t.Error("a learner is recorded as a voter")
	}
}
