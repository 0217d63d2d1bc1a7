package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestSealKeepsRecordOfSilentMember checks that a member's recorded values are kept if it responded when the decision
// to seal it was made, but no longer when the record is written. The recorded values show whether its volume was lost.
func TestSealKeepsRecordOfSilentMember(t *testing.T) {
	recorded := decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed, ID: 2, VolumeUID: "v1"}
	s := decide.State{Name: "a", Record: decide.Record{Token: "t", ClusterID: 0xc1}}
	s.Record = s.Record.With(decide.RecordedMember{Ordinal: 0, Mode: decide.Joining}).With(recorded)
	s.Replicas = []decide.Replica{{Ordinal: 0, VolumeUID: "v0"}, {Ordinal: 1, VolumeUID: "v9"}}
	s.Membership = decide.Membership{Known: true, ClusterID: 0xc1, Members: []decide.Member{
		{ID: 1, Name: "a-0", Started: true, Answers: true}, {ID: 2, Name: "a-1", Started: true},
	}}
	seal := decide.Seal{ClusterID: 0xc1, Members: decide.Ordinals(0).With(0).With(1)}
	got := decide.SealedRecord(s, seal, "fresh")
	if m, _ := got.Member(1); m != recorded {
		t.Errorf("a-1 is not responding, but its record becomes %+v", m)
	}
	if m, _ := got.Member(0); m != (decide.RecordedMember{Ordinal: 0, Mode: decide.Sealed, ID: 1, VolumeUID: "v0"}) {
		t.Errorf("a-0 responds, but its record becomes %+v", m)
	}
}
