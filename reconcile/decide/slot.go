package decide

// slotOfAnother reports whether a member that has never started is listed in a slot that still
// holds what another member has left: that one was removed, and its slot used again before its
// volume was gone, or before any pass could write that down. The new one can never start on it.
func (s State) slotOfAnother(m Member, ordinal int) bool {
	recorded, _ := s.Record.Member(ordinal)
	return !m.Started && (recorded.ID != 0 && recorded.ID != m.ID || s.holdsRemains(ordinal))
}

// holdsRemains reports whether the volume in a slot is on record as that of a member that is gone.
func (s State) holdsRemains(ordinal int) bool {
	gone, known := s.Record.removed(ordinal)
	return known && s.remains(gone)
}

// remains reports whether the volume that a member has left is there, and does not go by itself.
func (s State) remains(gone RemovedMember) bool {
	r := s.Replica(gone.Ordinal)
	goes := r.VolumeTerminating && !hasPodThatStays(r)
	return hasVolume(r) && gone.VolumeUID == r.VolumeUID && !goes
}
