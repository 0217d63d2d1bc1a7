package decide

// slotOfAnother reports whether a member that has never started is listed in a slot that still holds an earlier
// member's volume. The slot was reused before the volume was gone, or before a pass could record the removal. The new
// member can never start on that volume.
func (s State) slotOfAnother(m Member, ordinal int) bool {
	recorded, _ := s.Record.Member(ordinal)
	return !m.Started && (recorded.ID != 0 && recorded.ID != m.ID || s.holdsRemains(ordinal))
}

// holdsRemains reports whether the volume in a slot is recorded as left by a removed member.
func (s State) holdsRemains(ordinal int) bool {
	gone, known := s.Record.removed(ordinal)
	return known && s.remains(gone)
}

// remains reports whether the volume left by a member exists, and is not about to disappear by itself.
func (s State) remains(gone RemovedMember) bool {
	r := s.Replica(gone.Ordinal)
	goes := r.VolumeTerminating && !hasPodThatStays(r)
	return hasVolume(r) && gone.VolumeUID == r.VolumeUID && !goes
}
