package decide

import (
	"fmt"
	"slices"
)

// Loss is the kind of evidence that a member is lost.
type Loss string

// The kinds of evidence. A removal without evidence removes a surplus member.
const (
	// VolumeLost means that the recorded volume no longer exists.
	VolumeLost Loss = "VolumeLost"
	// VolumeGoing means that the volume is being deleted.
	VolumeGoing Loss = "VolumeGoing"
	// VolumeStranded means that the volume exists, but pods can never use it again.
	VolumeStranded Loss = "VolumeStranded"
	// Silence means that the member is not responding.
	Silence Loss = "Silence"
	// Corruption means that the member's data is known to be wrong.
	Corruption Loss = "Corruption"
)

// LossEvidence is the reason for removing a member. It is checked again, in objects read by name, immediately before
// the removal is requested from etcd.
type LossEvidence struct {
	Loss Loss `json:"loss,omitempty"`
	// VolumeUID is the UID of the claim that is lost, being deleted or stranded.
	VolumeUID string `json:"volumeUID,omitempty"`
}

// String returns the kind and the volume.
func (b LossEvidence) String() string {
	if b.VolumeUID == "" {
		return string(b.Loss)
	}
	return fmt.Sprintf("%s %s", b.Loss, b.VolumeUID)
}

// evidenceFor returns the evidence that a member is lost.
func (s State) evidenceFor(m Member) LossEvidence {
	ordinal, _ := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	recorded, _ := s.Record.Member(ordinal)
	switch {
	case s.corruptMinority(m) != "":
		return LossEvidence{Loss: Corruption}
	case m.Started && r.VolumeTerminating && r.VolumeUID != "":
		return LossEvidence{VolumeGoing, r.VolumeUID}
	case s.volumeGoes(m):
		return LossEvidence{VolumeGoing, recorded.VolumeUID}
	case s.volumeLost(ordinal):
		return LossEvidence{VolumeLost, recorded.VolumeUID}
	case r.Stranded != "":
		return LossEvidence{VolumeStranded, r.VolumeUID}
	}
	return LossEvidence{Loss: Silence}
}

// VotersChanged reports whether an action on a member must be decided again: the other voters have changed, one of them
// no longer responds, or one of them has raised a new CORRUPT alarm. The same applies if a voter now uses a different
// list, as after --force-new-cluster, because it may serve alongside the others.
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
