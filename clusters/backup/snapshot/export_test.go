package snapshot

// HoldChanged sets the maximum number of changed keys that are held in memory, and returns the previous value.
func HoldChanged(most int) (before int) {
	before, maxChanged = maxChanged, most
	return before
}
