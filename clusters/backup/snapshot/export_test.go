package snapshot

// HoldChanged sets the maximum number of changed keys to hold in memory, and returns the previous maximum.
func HoldChanged(most int) (before int) {
	before, maxChanged = maxChanged, most
	return before
}
