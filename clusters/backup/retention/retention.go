// Package retention decides which backups of a cluster are kept. It is pure, and in doubt it keeps.
package retention

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// Policy says what is kept: the union of all that one of its parts keeps.
type Policy struct {
	// Last is how many of the newest are kept.
	Last int
	// Hourly, Daily and Weekly are for how many hours, days and weeks that have one the newest
	// backup of each is kept. Days and weeks are those of UTC, and weeks begin on Monday.
	Hourly, Daily, Weekly int
	// MinAge is how old a backup is at least before it is deleted.
	MinAge time.Duration
	// ByVerified has the others given up for the newest backup that was read back, where newer ones were not, or not
	// yet, as those of other Jobs. Newer ones stay, and take the place of no other.
	ByVerified bool
}

// MaxDeleted is how many backups one call gives up at most: a mistake is noticed before it has cost
// them all.
const MaxDeleted = 20

// Orphaned is how much older than MinAge data without a manifest must be to be given up: they may
// be on their way.
const Orphaned = 7 * 24 * time.Hour

// Plan says what is deleted, and why nothing is if it is empty for a reason that a person may want
// to know.
type Plan struct {
	Delete []store.Backup
	// Behind are those that are next: one of them is deleted for each of the others that the store holds on to.
	Behind []store.Backup
	// RestsOn is the backup for which the others are given up.
	RestsOn store.Backup
	// Orphans are data that no manifest names, by their names in the store.
	Orphans []string
	Why     string
	// Waiting are newer than the one that the plan rests on, and have not been read back: only with Policy.ByVerified.
	Waiting []store.Backup
}

// Prune decides about the backups of one cluster, of all its cluster IDs, which must be all that
// there are. Nothing is deleted unless the newest backup has been read back and was found sound: it
// is what the others are given up for, and whoever carries out the plan looks at it again. Never
// deleted are:
//   - what the policy keeps of each cluster ID, and the newest good backup and the newest verified one of
//     each: one that was made again, or another cluster of the same name, is no reason to lose those of the
//     one that was, and one that was restored may have to be restored from before that again;
//   - what is younger than MinAge;
//   - what nobody can rely on, of the time since the newest good backup of its cluster ID: there is nothing better;
//   - anything of another cluster ID while the present one has fewer than Last verified backups, or
//     as long as both have lived at the same time.
func Prune(l store.Listing, p Policy, now time.Time) Plan {
	newest, some := l.Newest()
	waiting := map[store.Backup]bool{}
	if p.ByVerified {
		newest, waiting = newestVerified(l, newest)
	}
	switch {
	case !some:
		return Plan{Why: "there is no good backup"}
	case !newest.Verified:
		return Plan{Why: fmt.Sprintf(
			"the newest backup, %s, has not been read back since it was stored: verify it first", newest.ID())}
	case newest.Slot.After(now):
		return Plan{Why: fmt.Sprintf("the newest backup, %s, is of the future: one of the clocks is wrong",
			newest.ID())}
	}
	byID := map[string][]store.Backup{}
	for _, b := range l.Backups {
		byID[b.ClusterID] = append(byID[b.ClusterID], b)
	}
	kept := map[store.Backup]bool{}
	for _, backups := range byID {
		maps.Copy(kept, p.keep(backups, waiting))
	}
	maps.Copy(kept, waiting)
	good := keepNewest(kept, l.Backups)
	succeeded := p.succeeded(byID, newest.ClusterID)
	plan := Plan{RestsOn: newest, Waiting: slices.SortedFunc(maps.Keys(waiting), oldestFirst)}
	for _, b := range l.Backups {
		old := now.Sub(b.Slot) >= p.MinAge
		better, over := newest, true
		if b.ClusterID != newest.ClusterID {
			better, over = good[b.ClusterID], succeeded[b.ClusterID]
		}
		replaced := over && (b.Good() || b.Slot.Before(better.Slot))
		if old && replaced && !kept[b] {
			plan.Delete = append(plan.Delete, b)
		}
	}
	slices.SortFunc(plan.Delete, oldestFirst)
	first := min(MaxDeleted, len(plan.Delete))
	plan.Delete, plan.Behind = plan.Delete[:first], plan.Delete[first:]
	plan.Orphans = orphans(l, p, now)
	return plan
}

// newestVerified is the newest good backup that was read back, or the newest one if none was, and those that are newer.
func newestVerified(l store.Listing, newest store.Backup) (store.Backup, map[store.Backup]bool) {
	found := verified(l.Backups)
	if len(found) == 0 {
		return newest, nil
	}
	waiting := map[store.Backup]bool{}
	for _, b := range l.Backups {
		if b.Good() && !b.Verified && !b.Slot.Before(found[0].Slot) {
			waiting[b] = true
		}
	}
	return found[0], waiting
}

// keepNewest keeps the newest good backup and the newest verified one of each cluster ID, and returns the good ones.
func keepNewest(kept map[store.Backup]bool, backups []store.Backup) (good map[string]store.Backup) {
	good, proven := map[string]store.Backup{}, map[string]store.Backup{}
	for _, b := range backups {
		if b.Good() && b.Slot.After(good[b.ClusterID].Slot) {
			good[b.ClusterID] = b
		}
		if b.Good() && b.Verified && b.Slot.After(proven[b.ClusterID].Slot) {
			proven[b.ClusterID] = b
		}
	}
	for _, newest := range []map[string]store.Backup{good, proven} {
		for _, b := range newest {
			kept[b] = true
		}
	}
	return good
}

// succeeded are the cluster IDs for whose backups those of the present one stand: there are enough that were
// read back, and the other one was gone when they began.
func (p Policy) succeeded(byID map[string][]store.Backup, present string) map[string]bool {
	if len(verified(byID[present])) < max(1, p.Last) {
		return nil
	}
	first := slices.MinFunc(byID[present], oldestFirst)
	found := map[string]bool{}
	for id, backups := range byID {
		found[id] = slices.MaxFunc(backups, oldestFirst).Slot.Before(first.Slot)
	}
	return found
}

// keep are the backups of one cluster ID that the policy keeps: good ones only, since another counts as none, and none
// of those that wait for their verification.
func (p Policy) keep(backups []store.Backup, waiting map[store.Backup]bool) map[store.Backup]bool {
	kept := map[store.Backup]bool{}
	good := slices.DeleteFunc(slices.Clone(backups), func(b store.Backup) bool { return !b.Good() || waiting[b] })
	slices.SortFunc(good, func(a, b store.Backup) int { return oldestFirst(b, a) })
	for _, b := range good[:min(p.Last, len(good))] {
		kept[b] = true
	}
	for _, every := range []struct {
		count  int
		period func(time.Time) string
	}{{p.Hourly, hour}, {p.Daily, day}, {p.Weekly, week}} {
		periods := map[string]bool{}
		for _, b := range good {
			period := every.period(b.Slot.UTC())
			if !periods[period] && len(periods) < every.count {
				kept[b] = true
				periods[period] = true
			}
		}
	}
	return kept
}

func hour(t time.Time) string { return t.Format("2006010215") }
func day(t time.Time) string  { return t.Format("20060102") }
func week(t time.Time) string {
	year, week := t.ISOWeek()
	return fmt.Sprintf("%d-%d", year, week)
}

// verified are the good backups that were read back, the newest first.
func verified(backups []store.Backup) (found []store.Backup) {
	for _, b := range backups {
		if b.Good() && b.Verified {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b store.Backup) int { return oldestFirst(b, a) })
	return found
}

func oldestFirst(a, b store.Backup) int { return a.Slot.Compare(b.Slot) }

// orphans are data of slots without a manifest. Where a slot has one, which data are its is known
// to who reads the manifest only.
func orphans(l store.Listing, p Policy, now time.Time) (found []string) {
	named := map[int64]bool{}
	for _, b := range l.Backups {
		named[b.Slot.Unix()] = true
	}
	for name, slot := range l.Data {
		if old := now.Sub(slot) >= p.MinAge+Orphaned; old && !named[slot.Unix()] {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found[:min(MaxDeleted, len(found))]
}
