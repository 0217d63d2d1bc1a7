package decide

// slotOfAnother reports whether a member that has never started is listed in a slot that is on record as another member's: that one was removed
// and its slot used again before any pass could write that down. What stands there is the other's, so the new one can never start.
func (s State) slotOfAnother(m Member, ordinal int) bool {
	recorded, _ := s.Record.Member(ordinal)
	return !m.Started && recorded.ID != 0 && recorded.ID != m.ID
}
