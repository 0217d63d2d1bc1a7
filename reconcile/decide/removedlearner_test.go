package decide

import (
	"testing"
	"time"
)

// TestRemovedLearnerIsNotMissing checks that Quorate's own removal of a sealed learner from a cluster with one voter is
// not mistaken for a loss of half of the voters.
func TestRemovedLearnerIsNotMissing(t *testing.T) {
	for what, change := range map[string]func(*State){
		"its claim is being deleted": func(s *State) { s.Replicas[1].VolumeTerminating = true },
		"the cluster is scaled down": func(s *State) { s.Declared.Replicas = 1 },
		"its volume is lost": func(s *State) {
			s.down(PodPending, time.Hour, 1)
			s.Replicas[1].VolumeUID, s.Replicas[1].NoData = "new", true
		},
	} {
		s := after(2, func(s *State) {
			s.Declared.Replicas = 3
			s.Membership.Members[1].Learner = true
			m, _ := s.Record.Member(1)
			m.Learner = true
			s.Record = s.Record.With(m)
			change(s)
		})
		d := Decide(s)
		removal, is := d.Action.(RemoveMember)
		if !is {
			t.Fatalf("%s: %v %s", what, d.Action, d.Message)
		}
		if !NeedsAnnouncement(s, removal.ID) {
			t.Fatalf("%s: the removal is not recorded first", what)
		}
		announced, err := AnnouncedRecord(s, removal.ID)
		if err != nil {
			t.Fatal(err)
		}
		s.Record, s.Membership = announced, s.Membership.Without(removal.ID)
		if d := Decide(s); d.Verdict == Block {
			t.Errorf("%s: %s: %s", what, d.Rule, d.Message)
		}
	}
}
