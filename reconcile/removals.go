package reconcile

import (
	"cmp"
	"slices"

	"quorate.dev/quorate/reconcile/report"
)

// labeled returns the removals, each with the label of its source. This is the source recorded under that name or, if
// it does not exist, the only source with the same location.
func (d Desired) labeled(removals []report.Removal) []report.Removal {
	removals = slices.Clone(removals)
	for i := range removals {
		if owners := d.ownersNamed(removals[i].Source); len(owners) == 1 {
			removals[i].Label = cmp.Or(owners[0].Label, owners[0].Name)
		}
	}
	return removals
}

// mostEarlier is the maximum number of removals that are remembered as logged while it is unknown whether they are
// still held. Each of them may name many clusters.
const mostEarlier = 100

// logRemovals logs newly held removals. listed reports whether everything could be listed. If not, or if a source
// cannot be read, earlier removals may still be held.
func (r *Reconciler) logRemovals(removals []report.Removal, desired Desired, listed bool) {
	held := map[string]string{}
	for _, removal := range removals {
		text := removal.String()
		if _, known := r.held[text]; !known {
			r.Log.Warn("removal held; continuing with the last applied state", "removal", text)
		}
		held[text] = removal.Source
	}
	for text, source := range r.held {
		if earlier := len(held) - len(removals); earlier < mostEarlier && (!listed || desired.isUnread(source)) {
			held[text] = source
		}
	}
	r.held = held
}

// isUnread reports whether the source of an earlier declaration could not be read. If the source is unknown, it could
// be any source.
func (d Desired) isUnread(source string) bool {
	if state, known := d.StateOf(source); known && d.Unread == nil {
		return state.Unread != nil
	}
	return d.Failure() != nil
}
