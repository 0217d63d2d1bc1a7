package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reread is what is known about stored backups after some of them were read again.
type Reread struct {
	Job string    `json:"job"`
	At  time.Time `json:"at"`
	// Backups is the number of good backups, and Read how many of them were read again.
	Backups int64 `json:"backups,omitempty"`
	Read    int64 `json:"read,omitempty"`
	// Oldest is the earliest time since which a good backup was not read, or zero.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged are the newest damaged backups, each by its slot and its cluster's ID. More is the number of other
	// damaged backups.
	Damaged []string `json:"damaged,omitempty"`
	More    int64    `json:"more,omitempty"`
	// Unread is why a due backup could not be read, or empty.
	Unread string `json:"unread,omitempty"`
}

// CanHaveBeen reports whether the backups can have been read by now. A result from the future would be used until then,
// regardless of later findings.
func (r Reread) CanHaveBeen(now time.Time) bool { return !YetToCome(r.At, now) }

// KnowsDamage reports whether the number of damaged backups is known, including zero. If the store could not be listed,
// nothing else is known.
func (r *Reread) KnowsDamage() bool {
	return r != nil && (r.Unread == "" || r.Backups > 0 || len(r.Damaged) > 0)
}

// LaterReread returns the later of two, either of which may be nil.
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
	known := *a // the store could not be listed: earlier results still apply
	known.Backups, known.Oldest, known.Damaged, known.More = b.Backups, b.Oldest, b.Damaged, b.More
	return &known
}

// SlotLayout is the time format in a backup's name: valid in Kubernetes names, and sorted by time.
const SlotLayout = "20060102t150405z"

// Damages reports whether a backup was found to differ from what was stored. If clusters share a store, a backup of a
// different cluster may have the same slot; a name without a cluster matches any.
func (r *Reread) Damages(b *Backup) bool {
	return r != nil && b != nil && slices.ContainsFunc(r.Damaged, func(name string) bool {
		slot, cluster, says := strings.Cut(name, " of ")
		var of ID
		another := says && of.UnmarshalText([]byte(cluster)) == nil && of != b.ClusterID
		return slot == b.Slot.UTC().Format(SlotLayout) && !another
	})
}

// DescribeDamage names the damaged backups, or returns "".
func (r *Reread) DescribeDamage() string {
	if r == nil || len(r.Damaged) == 0 {
		return ""
	}
	names := strings.Join(r.Damaged, ", ")
	if r.More > 0 {
		names += fmt.Sprintf(" and %d more", r.More)
	}
	return "these stored backups differ from what was written: " + names
}

// rereadWarnings returns which stored backups are damaged, and why backups cannot be read.
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
