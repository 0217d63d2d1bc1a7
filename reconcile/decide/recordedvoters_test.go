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

// TestMembersWithoutEvidenceAreNotRecordedVoters checks that a sealed member counts if its ID or its volume is recorded,
// and that no member of a lost record counts.
func TestMembersWithoutEvidenceAreNotRecordedVoters(t *testing.T) {
	change := func(f func(*RecordedMember)) func(*State) { return func(s *State) { f(&s.Record.Members[2]) } }
	for what, c := range map[string]struct {
		change func(*State)
		want   int
	}{
		"ID and volume":         {func(*State) {}, 3},
		"only its ID":           {change(func(m *RecordedMember) { m.VolumeUID = "" }), 3},
		"only a volume":         {change(func(m *RecordedMember) { m.ID = 0 }), 3},
		"neither ID nor volume": {change(func(m *RecordedMember) { m.ID, m.VolumeUID = 0, "" }), 2},
		"the record is lost":    {func(s *State) { s.Record.ClusterID = 0; s.Record.Members = s.Record.Members[:0] }, 0},
	} {
		s := after(3, c.change)
		if got := len(s.RecordedVoters()); got != c.want {
			t.Errorf("%s: %d voters, want %d", what, got, c.want)
		}
	}
}

// TestRemovalIsAnnouncedIfListWouldNotShowIt checks which removals must be recorded before etcd is asked: those after
// which the list alone would look like the loss of half of the voters, or could be confirmed by fewer voters than before.
func TestRemovalIsAnnouncedIfListWouldNotShowIt(t *testing.T) {
	for what, c := range map[string]struct {
		voters, learners, removed int
		want                      bool
	}{
		"one of three voters":                      {3, 0, 2, false},
		"one of four voters, so fewer can confirm": {4, 0, 3, true},
		"one of two voters":                        {2, 0, 1, true},
		"the only voter, with two learners":        {1, 2, 0, true},
		"the only learner, with one voter":         {1, 1, 1, true},
		"one of two learners, with two voters":     {2, 2, 3, false},
		"one of two learners, with three voters":   {3, 2, 4, false},
	} {
		s := after(c.voters+c.learners, func(s *State) {
			for i := c.voters; i < c.voters+c.learners; i++ {
				s.Record.Members[i].Learner, s.Membership.Members[i].Learner = true, true
			}
		})
		if got := NeedsAnnouncement(s, s.Membership.Members[c.removed].ID); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
