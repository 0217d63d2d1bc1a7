package snapshot

// HoldChanged sets how many changed keys are held in memory, and returns the value before.
func HoldChanged(most int) (before int) {
	before, maxChanged = maxChanged, most
	return before
}
