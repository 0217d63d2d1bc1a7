package invariants

import "quorate.dev/quorate/reconcile/decide"

// lossIsSeen reports whether the state shows the evidence named in a removal.
func lossIsSeen(s decide.State, a decide.RemoveMember, m decide.Member) bool {
	ordinal, _ := slotOf(s, m)
	r := replicaAt(s, ordinal)
	volume := a.Evidence.VolumeUID
	switch a.Evidence.Loss {
	case "":
		return volume == ""
	case decide.Corruption:
		return volume == "" && doubted(s)
	case decide.VolumeGoing:
		recorded, _ := recordedAt(s.Record, ordinal)
		gone := withoutClaim(s, r) && recorded.VolumeUID == volume && m.Answers
		return gone || volume != "" && r.VolumeUID == volume && r.VolumeTerminating
	case decide.VolumeStranded:
		return volume != "" && r.VolumeUID == volume && r.Stranded != "" && !m.Answers
	case decide.Silence:
		return volume == "" && !m.Answers
	case decide.VolumeLost:
		for _, recorded := range s.Record.Members {
			if recorded.Ordinal == ordinal {
				return volume != "" && recorded.VolumeUID == volume && r.VolumeUID != volume && !m.Answers
			}
		}
	}
	return false
}
