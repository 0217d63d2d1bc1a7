package decide

import (
	"fmt"
	"slices"
)

// Loss is the kind of a proof that a member is lost.
type Loss string

// The kinds. A removal without one is that of a member too many.
const (
	// VolumeLost: the volume on record is not there any more.
	VolumeLost Loss = "VolumeLost"
	// VolumeGoing: the volume is being deleted.
	VolumeGoing Loss = "VolumeGoing"
	// VolumeStranded: the volume is there, and no pod can use it again.
	VolumeStranded Loss = "VolumeStranded"
	// Silence: the member does not answer.
	Silence Loss = "Silence"
	// Corruption: the member says that its data is corrupt.
	Corruption Loss = "Corruption"
)

// Because is what the removal of a member rests on. It is read again, by name, right before etcd is
// told.
type Because struct {
	Loss Loss `json:"loss,omitempty"`
	// VolumeUID of the claim that is lost, going or stranded.
	VolumeUID string `json:"volumeUID,omitempty"`
}

// String returns the kind and the volume.
func (b Because) String() string {
	if b.VolumeUID == "" {
		return string(b.Loss)
	}
	return fmt.Sprintf("%s %s", b.Loss, b.VolumeUID)
}

// because says what proves that a member is lost.
func (s State) because(m Member) Because {
	ordinal, _ := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	recorded, _ := s.Record.Member(ordinal)
	switch {
	case s.corruptMinority(m) != "":
		return Because{Loss: Corruption}
	case m.Started && r.VolumeTerminating && r.VolumeUID != "":
		return Because{VolumeGoing, r.VolumeUID}
	case s.volumeGoes(m):
		return Because{VolumeGoing, recorded.VolumeUID}
	case s.volumeLost(ordinal):
		return Because{VolumeLost, recorded.VolumeUID}
	case r.Stranded != "":
		return Because{VolumeStranded, r.VolumeUID}
	}
	return Because{Loss: Silence}
}

// VotersChanged reports whether the voters beside one that is to be removed or restarted are others
// than were seen, fewer of them answer, or more of them raise alarms about their data; or whether one goes
// by another list since, as after somebody has forced a new cluster on it, and may serve beside the others: then it
// is to be decided again.
func VotersChanged(seen, now Membership, but ID) bool {
	voters, others := seen.Voters(), now.Voters()
	if len(voters) != len(others) {
		return true
	}
	for _, before := range voters {
		after, listed := now.byID(before.ID)
		fresh := slices.Contains(after.Alarms, AlarmCorrupt) && !slices.Contains(before.Alarms, AlarmCorrupt)
		if before.Disagrees == "" && after.Disagrees != "" {
			return true
		}
		if before.ID != but && (!listed || after.Learner || before.Answers && !after.Answers || fresh) {
			return true
		}
	}
	return false
}
