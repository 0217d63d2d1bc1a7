// Package retention decides which backups of a cluster to keep. It does not access stores. When in doubt, it keeps a
// backup.
package retention

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// Policy specifies which backups to keep. A backup is kept if any part of the policy keeps it.
type Policy struct {
	// Last is the number of newest backups to keep.
	Last int
	// Hourly, Daily and Weekly are the numbers of hours, days and weeks for which to keep the newest backup of each.
	// Periods without a backup do not count. Days and weeks are in UTC, and weeks begin on Monday.
	Hourly, Daily, Weekly int
	// MinAge is the minimum age at which a backup may be deleted.
	MinAge time.Duration
	// ByVerified bases retention on the newest verified backup even if newer backups have not been verified, for
	// example because other Jobs have yet to verify them. Newer backups are kept and do not count toward the policy.
	ByVerified bool
}

// MaxDeleted is the maximum number of backups to delete at once, so that a mistake is noticed before all backups are
// gone.
const MaxDeleted = 20

// Orphaned is added to MinAge to get the age at which data without a manifest may be deleted. Younger data may belong
// to an upload in progress.
const Orphaned = 7 * 24 * time.Hour

// Plan lists the backups and data to delete. If nothing is to be deleted for a reason that may matter to users, Why
// contains the reason.
type Plan struct {
	Delete []store.Backup
	// Behind lists the next candidates. For each backup in Delete that the store refuses to delete, one of the
	// candidates is deleted instead.
	Behind []store.Backup
	// RestsOn is the verified backup that makes it safe to delete the others. Backups of another cluster ID are also
	// replaced by the newest verified backup of that ID in Earlier.
	RestsOn store.Backup
	Earlier map[string]store.Backup
	// Orphans lists the names of data in the store that no manifest refers to.
	Orphans []string
	Why     string
	// Waiting lists the unverified backups that are newer than RestsOn. It is only used with Policy.ByVerified.
	Waiting []store.Backup
}

// Prune decides which backups of one cluster to delete. The listing must contain all of the cluster's backups, whatever
// their cluster ID. Nothing is deleted unless the newest good backup (with Policy.ByVerified, any good backup) has been
// read back and found sound. Deleting a backup with a different cluster ID also requires a newer backup of that ID that
// has been read back. The caller must check these backups again before each deletion. The following are never deleted:
//   - backups that the policy keeps for each cluster ID, and the newest good and the newest verified backup
//     of each ID. A cluster that was recreated, or a different cluster of the same name, must not cost the
//     original its backups, and a restored cluster may have to be restored again to an earlier point;
//   - anything younger than MinAge;
//   - unreliable backups that are newer than the newest good backup of their cluster ID, because no better
//     backups of that time exist;
//   - anything of a different cluster ID while the present ID has fewer than Last verified backups, or if
//     both clusters existed at the same time.
func Prune(l store.Listing, p Policy, now time.Time) Plan {
	newest, some := l.Newest()
	waiting := map[store.Backup]bool{}
	if p.ByVerified {
		newest, waiting = newestVerified(l, newest)
	}
	switch {
	case !some:
		return Plan{Why: "no good backup exists"}
	case newest.Differs:
		return Plan{Why: fmt.Sprintf("a drill with the newest backup, %s, found different data in etcd. Run "+
			"\"quorate backups drill\" with it again, or take a new backup", newest.ID())}
	case !newest.Verified:
		return Plan{Why: fmt.Sprintf(
			"the newest backup, %s, has not been read back since it was stored. Verify it first", newest.ID())}
	case newest.Slot.After(now):
		return Plan{Why: fmt.Sprintf("the newest backup, %s, is dated in the future; a clock is wrong",
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
	proven := keepNewest(kept, l.Backups)
	succeeded := p.succeeded(byID, newest.ClusterID)
	plan := Plan{RestsOn: newest, Earlier: proven, Waiting: slices.SortedFunc(maps.Keys(waiting), oldestFirst)}
	for _, b := range l.Backups {
		old := now.Sub(b.Slot) >= p.MinAge
		replaced := b.Good() || b.Slot.Before(newest.Slot)
		if b.ClusterID != newest.ClusterID {
			replaced = succeeded[b.ClusterID] && b.Slot.Before(proven[b.ClusterID].Slot)
		}
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

// newestVerified returns the newest verified backup and the newer, unverified backups. If no backup is verified, it
// returns newest.
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

// keepNewest adds the newest good and the newest verified backup of each cluster ID to kept, and returns the newest
// verified backups.
func keepNewest(kept map[store.Backup]bool, backups []store.Backup) (proven map[string]store.Backup) {
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
	return proven
}

// succeeded returns the cluster IDs that the present ID has replaced. The present ID must have enough verified backups,
// and its first backup must be newer than all backups of a replaced ID.
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

// keep returns the backups of one cluster ID that the policy keeps. Only good backups count, except those waiting for
// verification.
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

// verified returns the good backups that have been read back, newest first.
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

// orphans returns old data in slots without a manifest. If a slot has a manifest, the data is not considered, because
// only the content of the manifest shows which data belongs to it.
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
