package decide

// lossIsSeen reports whether the state shows what a removal says that it rests on.
func lossIsSeen(s State, a RemoveMember, m Member) bool {
	ordinal, _ := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	volume := a.Because.VolumeUID
	switch a.Because.Loss {
	case "":
		return volume == ""
	case Corruption:
		return volume == "" && doubted(s)
	case VolumeGoing:
		recorded, _ := s.Record.Member(ordinal)
		gone := r.VolumeUID == "" && recorded.VolumeUID == volume && m.Answers
		return volume != "" && (r.VolumeUID == volume && r.VolumeTerminating || gone)
	case VolumeStranded:
		return volume != "" && r.VolumeUID == volume && r.Stranded != "" && !m.Answers
	case Silence:
		return volume == "" && !m.Answers
	case VolumeLost:
		for _, recorded := range s.Record.Members {
			if recorded.Ordinal == ordinal {
				return volume != "" && recorded.VolumeUID == volume && r.VolumeUID != volume && !m.Answers
			}
		}
	}
	return false
}
