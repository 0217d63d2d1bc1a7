package snapshot

// HoldChanged sets the number of changed keys that are held in memory, and returns the previous one.
func HoldChanged(most int) (before int) {
	before, maxChanged = maxChanged, most
	return before
}
