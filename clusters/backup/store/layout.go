package store

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// A store looks like this:
//
//	NAMESPACE/CLUSTER/CLUSTER-ID/SLOT-REVISION-RANDOM.db.zst.age   data
//	                            /SLOT.json                         manifest: there is such a backup
//	                            /SLOT.suspect.json                 manifest of one that may hold wrong data
//	                            /SLOT.verified.json                it was read back, and is sound
//	                            /SLOT.damaged.json                 it was read back, and is not
//	                            /SLOT.read-TIME.json               what is stored was read again then, and is what was
//
// A cluster ID is a line of history of its own: after a restore, revisions begin elsewhere. Names
// that do not look so belong to somebody else: they are left alone.

// Cluster names the cluster that backups are of.
type Cluster struct{ Namespace, Name string }

func (c Cluster) String() string { return c.Namespace + "/" + c.Name }

// dir holds all backups of the cluster. It ends in a slash, so that it is no other cluster's.
func (c Cluster) dir() string { return c.Namespace + "/" + c.Name + "/" }

// Backup is what names say of a backup that has a manifest.
type Backup struct {
	Cluster Cluster
	// ClusterID of etcd, as 16 hexadecimal digits.
	ClusterID string
	// Slot is the moment that it is for, in UTC and whole seconds.
	Slot time.Time
	// Suspect: members held different data when it was taken.
	Suspect bool
	// Verified, or Damaged: it was read back since, and so it was found.
	Verified, Damaged bool
	// Drilled: an etcd was started with it.
	Drilled bool
	// ReadAt is when what is stored of it was last read again, and was what it had been; zero if it never was.
	ReadAt time.Time
}

// clockSkew is how far the clocks of machines may be apart.
const clockSkew = 5 * time.Minute

// UnreadSince is since when nobody has read what is stored of the backup again: since it was taken, if nobody ever
// has. A time that has not come by now says nothing.
func (b Backup) UnreadSince(now time.Time) time.Time {
	if b.ReadAt.After(b.Slot) && !b.ReadAt.After(now.Add(clockSkew)) {
		return b.ReadAt
	}
	return b.Slot
}

// Good reports whether the backup counts as one: nothing speaks against it.
func (b Backup) Good() bool { return !b.Suspect && !b.Damaged }

// ID names the backup among those of its cluster: its slot.
func (b Backup) ID() string { return SlotID(b.Slot) }

// SlotID is how a slot is written.
func SlotID(slot time.Time) string { return slot.UTC().Format(decide.SlotLayout) }

// ParseSlot reads what SlotID wrote.
func ParseSlot(id string) (time.Time, error) {
	slot, err := time.Parse(decide.SlotLayout, id)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no backup: want the time of one, such as %s", id, "20261122t180000z")
	}
	return slot, nil
}

func (b Backup) dir() string { return b.Cluster.dir() + b.ClusterID + "/" }

// stem is what the names of all that is said of the backup begin with.
func (b Backup) stem() string {
	if b.Suspect {
		return b.dir() + b.ID() + ".suspect"
	}
	return b.dir() + b.ID()
}

func (b Backup) manifestName() string { return b.stem() + ".json" }
func (b Backup) verifiedName() string { return b.stem() + ".verified.json" }
func (b Backup) damagedName() string  { return b.stem() + ".damaged.json" }
func (b Backup) drilledName() string  { return b.stem() + ".drilled.json" }

// markNames are those of what is said of the backup, but for when it was read again; what speaks against it goes last.
func (b Backup) markNames() []string {
	return []string{b.drilledName(), b.verifiedName(), b.damagedName()}
}

// readPrefix is what the names begin with that say when the backup was read again.
func (b Backup) readPrefix() string           { return b.stem() + ".read-" }
func (b Backup) readName(at time.Time) string { return b.readPrefix() + SlotID(at) + ".json" }

// readNames are the names there are that say so. Others only begin as these do, and are somebody else's.
func (b Backup) readNames(ctx context.Context, in Bucket) ([]string, error) {
	names, err := in.List(ctx, b.readPrefix())
	return slices.DeleteFunc(names, func(name string) bool {
		return !readRest.MatchString(strings.TrimPrefix(name, b.stem()))
	}), err
}

// Listing is all that a store has of the clusters that were asked for.
type Listing struct {
	// Backups in the order of clusters, their IDs, and time.
	Backups []Backup
	// Data that are in the store, by their names, with the slots they are for. Those that no manifest
	// names were left behind, or are on their way.
	Data map[string]time.Time
	// marks are the names of what is said of a backup besides its manifest, by the stem of its names.
	marks map[string][]string
}

var (
	namePart = `[a-z0-9](?:[-a-z0-9]*[a-z0-9])?`
	inStore  = regexp.MustCompile(`^(` + namePart + `)/(` + namePart + `)/([0-9a-f]{16})/(\d{8}t\d{6}z)(.+)$`)
	readRest = regexp.MustCompile(`^\.read-(\d{8}t\d{6}z)\.json$`)
	dataRest = regexp.MustCompile(`^-\d{1,19}-[0-9a-f]{8}\.db(?:\.zst)?(?:\.age)?$`)
)

// List lists the backups of a cluster, or of all if its name is empty.
func List(ctx context.Context, b Bucket, of Cluster) (Listing, error) {
	prefix := ""
	if of.Name != "" {
		prefix = of.dir()
	}
	names, err := b.List(ctx, prefix)
	if err != nil {
		return Listing{}, err
	}
	return read(names), nil
}

func read(names []string) Listing {
	listing := Listing{Data: map[string]time.Time{}, marks: map[string][]string{}}
	marks := map[Backup][]string{} // what is said of each
	for _, name := range names {
		parts := inStore.FindStringSubmatch(name)
		if parts == nil {
			continue
		}
		slot, err := time.Parse(decide.SlotLayout, parts[4])
		if err != nil {
			continue
		}
		backup := Backup{Cluster: Cluster{parts[1], parts[2]}, ClusterID: parts[3], Slot: slot}
		if dataRest.MatchString(parts[5]) {
			listing.Data[name] = slot
			continue
		}
		rest, suspect := strings.CutPrefix(parts[5], ".suspect")
		backup.Suspect = suspect
		marks[backup] = append(marks[backup], rest)
		listing.marks[backup.stem()] = append(listing.marks[backup.stem()], name)
	}
	for backup, said := range marks {
		if slices.Contains(said, ".json") {
			backup.Verified, backup.Damaged = slices.Contains(said, ".verified.json"),
				slices.Contains(said, ".damaged.json")
			backup.Drilled = slices.Contains(said, ".drilled.json")
			backup.ReadAt = lastRead(said)
			listing.Backups = append(listing.Backups, backup)
		}
	}
	slices.SortFunc(listing.Backups, func(a, b Backup) int { return strings.Compare(a.stem(), b.stem()) })
	return listing
}

// lastRead is the newest time at which a backup was read again, by what is said of it.
func lastRead(said []string) (at time.Time) {
	for _, rest := range said {
		if found := readRest.FindStringSubmatch(rest); found != nil {
			if then, err := time.Parse(decide.SlotLayout, found[1]); err == nil && then.After(at) {
				at = then
			}
		}
	}
	return at
}

// LeastRecentlyRead are the good backups of slots that have come by now, the one that was not read for the longest
// time first.
func (l Listing) LeastRecentlyRead(now time.Time) []Backup {
	var good []Backup
	for _, b := range l.Until(now.Add(clockSkew)).Backups {
		if b.Good() {
			good = append(good, b)
		}
	}
	slices.SortStableFunc(good, func(a, b Backup) int { return a.UnreadSince(now).Compare(b.UnreadSince(now)) })
	return good
}

// Until is the listing without what is of a later slot: whoever reads by a right clock is not
// misled by backups that were taken by a wrong one.
func (l Listing) Until(now time.Time) Listing {
	l.Backups = slices.DeleteFunc(slices.Clone(l.Backups), func(b Backup) bool { return b.Slot.After(now) })
	return l
}

// Newest is the newest good backup of a cluster, of whichever ID; false if there is none.
func (l Listing) Newest() (Backup, bool) {
	var newest Backup
	for _, b := range l.Backups {
		if b.Good() && b.Slot.After(newest.Slot) {
			newest = b
		}
	}
	return newest, !newest.Slot.IsZero()
}

// Revisions are those of the backups, as the names of their data say: no manifest is read. Where data
// of one slot say several, only its manifest knows, and it is left out.
func (l Listing) Revisions() map[Backup]int64 {
	said := map[string][]int64{}
	for name, slot := range l.Data {
		beside := path.Dir(name) + "/" + SlotID(slot)
		digits, _, _ := strings.Cut(name[len(beside)+len("-"):], "-")
		if revision, err := strconv.ParseInt(digits, 10, 64); err == nil && !slices.Contains(said[beside], revision) {
			said[beside] = append(said[beside], revision)
		}
	}
	revisions := map[Backup]int64{}
	for _, b := range l.Backups {
		if known := said[b.dir()+b.ID()]; len(known) == 1 {
			revisions[b] = known[0]
		}
	}
	return revisions
}

// At are the backups of a slot: more than one if clusters of several IDs had one then. Where there
// is another one, a suspect one is none of them.
func (l Listing) At(slot time.Time) []Backup {
	var found, suspect []Backup
	for _, b := range l.Backups {
		switch {
		case !b.Slot.Equal(slot):
		case b.Suspect:
			suspect = append(suspect, b)
		default:
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return suspect
	}
	return found
}

// isData reports whether a name in a store is one of data.
func isData(name string) bool {
	parts := inStore.FindStringSubmatch(name)
	return parts != nil && dataRest.MatchString(parts[5])
}

// isDataName reports whether a file beside a manifest of that slot may be its data.
func isDataName(name, slot string) bool {
	return path.Base(name) == name && strings.HasPrefix(name, slot) && dataRest.MatchString(name[len(slot):])
}

var wholeName = regexp.MustCompile(`^` + namePart + `$`)

// IsName reports whether a text may be the name of a namespace or of a cluster.
func IsName(text string) bool { return len(text) <= 253 && wholeName.MatchString(text) }
