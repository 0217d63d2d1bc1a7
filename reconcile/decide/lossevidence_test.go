package decide

import (
	"testing"
	"time"
)

// TestVotersChanged checks that any loss or degradation of the other voters is detected, and nothing else.
func TestVotersChanged(t *testing.T) {
	member := func(n int) Member { return healthy(4).Membership.Members[n] }
	for what, c := range map[string]struct {
		before, after func(*State)
		want          bool
	}{
		"no change":           {nil, nil, false},
		"one more member":     {nil, func(s *State) { s.Membership.Members = append(s.Membership.Members, member(3)) }, true},
		"one member fewer":    {nil, func(s *State) { s.Membership.Members = s.Membership.Members[1:] }, true},
		"one member replaced": {nil, func(s *State) { s.Membership.Members[1].ID = 0xb1 }, true},
		"one more voter, another became a learner": {nil, func(s *State) {
			s.Membership.Members = append(s.Membership.Members, member(3))
			s.Membership.Members[1].Learner = true
		}, true},
		"one stops responding":                {nil, func(s *State) { s.Membership.Members[1].Answers = false }, true},
		"a member not responding is replaced": {func(s *State) { s.Membership.Members[1].Answers = false }, func(s *State) { s.Membership.Members[1].ID = 0xb1 }, true},
		"one is still not responding":         {func(s *State) { s.Membership.Members[1].Answers = false }, func(s *State) { s.Membership.Members[1].Answers = false }, false},
		"one responds again":                  {func(s *State) { s.Membership.Members[1].Answers = false }, nil, false},
		"CORRUPT alarm raised":                {nil, func(s *State) { s.Membership.Members[1].Alarms = []AlarmKind{"NOSPACE", "CORRUPT"} }, true},
		"CORRUPT alarm still raised":          {func(s *State) { s.Membership.Members[1].Alarms = []AlarmKind{"CORRUPT"} }, func(s *State) { s.Membership.Members[1].Alarms = []AlarmKind{"CORRUPT"} }, false},
		"NOSPACE alarm raised":                {nil, func(s *State) { s.Membership.Members[1].Alarms = []AlarmKind{"NOSPACE"} }, false},
		"one member's list differs":           {nil, func(s *State) { s.Membership.Members[1].Disagrees = "lists itself alone" }, true},
		"one member's list still differs":     {func(s *State) { s.Membership.Members[1].Disagrees = "so" }, func(s *State) { s.Membership.Members[1].Disagrees = "so" }, false},
		"one member's list no longer differs": {func(s *State) { s.Membership.Members[1].Disagrees = "so" }, nil, false},
		"the removed member's list differs":   {nil, func(s *State) { s.Membership.Members[2].Disagrees = "lists itself alone" }, true},
		"the removed member stops responding, CORRUPT alarm": {nil, func(s *State) {
			s.Membership.Members[2].Answers, s.Membership.Members[2].Alarms = false, []AlarmKind{"CORRUPT"}
		}, false},
	} {
		if got := VotersChanged(after(3, c.before).Membership, after(3, c.after).Membership, 0xa2); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestLossEvidence checks that a removal names its evidence and the volume.
func TestLossEvidence(t *testing.T) {
	going := func(s *State) { s.Replicas[1].VolumeTerminating = true }
	for want, changes := range map[LossEvidence][]func(*State){
		{Loss: Corruption}: {func(s *State) {
			for i := range s.Membership.Members {
				s.Membership.Members[i].Hash = Hash{Revision: 1, Sum: 7}
			}
			s.Membership.Members[1].Hash.Sum = 8
			going(s)
		}},
		{VolumeGoing, "v1"}: {
			going,
			func(s *State) { going(s); s.Membership.Members[1].Learner = true },
			func(s *State) { going(s); s.down(PodPending, time.Hour, 1); s.Replicas[1].Stranded = "x" },
			func(s *State) { s.Replicas[1].VolumeUID = "" },
			func(s *State) { going(s); s.Replicas[1].VolumeUID = "" },
		},
		{VolumeGoing, "w1"}: {func(s *State) { going(s); s.Replicas[1].VolumeUID = "w1" }},
		{VolumeLost, "v1"}: {func(s *State) {
			s.down(PodFailing, time.Hour, 1)
			s.Replicas[1].VolumeUID, s.Replicas[1].Stranded = "w1", "x"
		}},
		{VolumeStranded, "v1"}: {func(s *State) { s.down(PodPending, time.Hour, 1); s.Replicas[1].Stranded = "x" }},
		{Loss: Silence}: {
			func(s *State) { s.down(PodFailing, time.Hour, 1) },
			func(s *State) { going(s); s.down(PodFailing, time.Hour, 1); s.Membership.Members[1].Started = false },
		},
	} {
		for i, change := range changes {
			s := after(3, change)
			if got := s.evidenceFor(s.Membership.Members[1]); got != want {
				t.Errorf("%s, %d: %s", want, i, got)
			}
		}
	}
}

// TestRemovalIsAnnouncedIfNoMajorityRemains checks that a removal is recorded before the request to etcd if fewer than
// a majority of the recorded voters would remain.
func TestRemovalIsAnnouncedIfNoMajorityRemains(t *testing.T) {
	record := func(n int, mode Mode) func(*State) {
		return func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: n, Mode: mode, ID: ID(0xa0 + n)}) }
	}
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    bool
	}{
		"one member":    {1, nil, true},
		"two members":   {2, nil, true},
		"three members": {3, nil, false},
		"two members, the other leaving and unlisted": {2, func(s *State) { s.Record.Members[0].Leaving, s.Membership.Members = true, s.Membership.Members[:1] }, true},
		"three members, two joining":                  {3, both(record(3, Joining), record(4, Joining)), false},
		"three members, one unlisted, its ID unknown": {3, func(s *State) { s.Membership.Members, s.Record.Members[0].ID = s.Membership.Members[1:], 0 }, true},
		"two members, already announced":              {2, func(s *State) { s.Record.Members[1].Leaving = true }, false},
		"two members, the other announced":            {2, func(s *State) { s.Record.Members[0].Leaving = true }, true},
		"two members, one joining":                    {2, record(2, Joining), true},
		"three members, one unlisted":                 {3, func(s *State) { s.Membership.Members = s.Membership.Members[1:] }, true},
		"three members, one replaced":                 {3, func(s *State) { s.Membership.Members[0].ID = 0xb0 }, true},
		"three members, one ID unknown":               {3, func(s *State) { s.Record.Members[0].ID = 0 }, false},
		"four recorded voters, one unlisted":          {3, record(3, Sealed), true},
	} {
		s := after(c.members, c.change)
		id := ID(0xa0 + min(c.members-1, 1))
		if got := NeedsAnnouncement(s, id); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	s := healthy(2)
	announced, err := AnnouncedRecord(s, 0xa1)
	if m, _ := announced.Member(1); err != nil || !m.Leaving || m.ID != 0xa1 || s.Record.Members[1].Leaving {
		t.Errorf("a-1 is recorded as %+v (%v), and before as %+v", m, err, s.Record.Members[1])
	}
	for what, change := range map[string]func(*State){
		"unlisted":          func(s *State) { s.Membership.Members = s.Membership.Members[:1] },
		"no record":         func(s *State) { s.Record.Members = s.Record.Members[:1] },
		"an unknown member": func(s *State) { s.Membership.Members[1].Name = "x-1" },
	} {
		if r, err := AnnouncedRecord(after(2, change), 0xa1); err == nil {
			t.Errorf("%s, but the removal is announced: %+v", what, r)
		}
	}
}
