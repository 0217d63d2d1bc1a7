package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reread is what is known of stored backups since some of them were read again.
type Reread struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
	// Backups is how many good ones there were, and Read how many of them were read again.
	Backups int64 `json:"backups,omitempty"`
	Read    int64 `json:"read,omitempty"`
	// Oldest is since when the one of them was not read that was not read for the longest time; zero if there is none.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged are the newest that were found damaged, each by its slot and the ID of its cluster. More is how many
	// there are besides.
	Damaged []string `json:"damaged,omitempty"`
	More    int64    `json:"more,omitempty"`
	// Unread says why one could not be read that was due; empty if there is none.
	Unread string `json:"unread,omitempty"`
}

// CanHaveBeen reports whether they can have been read by now. What is of the future would be believed until then,
// whatever is found meanwhile.
func (r Reread) CanHaveBeen(now time.Time) bool { return !YetToCome(r.At, now) }

// KnowsDamage reports whether it says how many backups are damaged, none included. Where the store could not be listed,
// it says only that.
func (r *Reread) KnowsDamage() bool {
	return r != nil && (r.Unread == "" || r.Backups > 0 || len(r.Damaged) > 0)
}

// LaterReread is the one of two that is of a later time; nil stands for none.
func LaterReread(a, b *Reread) *Reread {
	switch {
	case a == nil || b == nil:
		return cmp.Or(a, b)
	case b.At.After(a.At):
		a, b = b, a
	}
	if a.KnowsDamage() {
		return a
	}
	known := *a // the store could not be listed: what is known of it still holds
	known.Backups, known.Oldest, known.Damaged, known.More = b.Backups, b.Oldest, b.Damaged, b.More
	return &known
}

// SlotLayout is how a store names a backup, by its slot: as names in Kubernetes can hold a moment, in an order that is
// that of time.
const SlotLayout = "20060102t150405z"

// Damages reports whether a backup was found to be no longer what was stored. One of another cluster may be of the same
// slot, where several share a store; a name that does not say which it is of stands for any.
func (r *Reread) Damages(b *Backup) bool {
	return r != nil && b != nil && slices.ContainsFunc(r.Damaged, func(name string) bool {
		slot, cluster, says := strings.Cut(name, " of ")
		var of ID
		another := says && of.UnmarshalText([]byte(cluster)) == nil && of != b.ClusterID
		return slot == b.Slot.UTC().Format(SlotLayout) && !another
	})
}

// DescribeDamage names the backups that are damaged; empty if none is.
func (r *Reread) DescribeDamage() string {
	if r == nil || len(r.Damaged) == 0 {
		return ""
	}
	names := strings.Join(r.Damaged, ", ")
	if r.More > 0 {
		names += fmt.Sprintf(" and %d more", r.More)
	}
	return "what is stored of these backups is not what was: " + names
}

// rereadWarnings say which stored backups are damaged, and why they cannot be read.
func (b Backups) rereadWarnings() []string {
	var warnings []string
	if damage := b.Reread.DescribeDamage(); damage != "" {
		warnings = append(warnings, damage+"; they count no more")
	}
	if b.Reread != nil && b.Reread.Unread != "" {
		warnings = append(warnings, "a stored backup could not be read again: "+b.Reread.Unread)
	}
	return warnings
}
