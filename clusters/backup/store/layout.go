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

// The layout of a store:
//
//	NAMESPACE/CLUSTER/CLUSTER-ID/SLOT-REVISION-RANDOM.db.zst.age   data
//	                            /SLOT.json                         manifest: the backup exists
//	                            /SLOT.suspect.json                 manifest of a backup that may contain wrong data
//	                            /SLOT.verified.json                mark: the backup was read back and is sound
//	                            /SLOT.damaged.json                 mark: the backup was read back and is damaged
//	                            /SLOT.drilled.json                 mark: an etcd was started with the backup
//	                            /SLOT.differs.json                 mark: that etcd had different data
//
// Each cluster ID has its own history, because a restored cluster starts at a different revision. Names in any other
// format do not belong to the store and are left alone.

// Cluster identifies the cluster of a backup.
type Cluster struct{ Namespace, Name string }

func (c Cluster) String() string { return c.Namespace + "/" + c.Name }

// dir returns the prefix of the names of all backups of the cluster. It ends in a slash, so that it does not match
// other clusters.
func (c Cluster) dir() string { return c.Namespace + "/" + c.Name + "/" }

// Backup describes a backup that has a manifest. All fields are derived from names in the store.
type Backup struct {
	Cluster Cluster
	// ClusterID is etcd's cluster ID, as 16 hexadecimal digits.
	ClusterID string
	// Slot is the time for which the backup was taken, in UTC and in whole seconds.
	Slot time.Time
	// Suspect is set if members held different data when the backup was taken.
	Suspect bool
	// Verified or Damaged is set if the backup has since been read back.
	Verified, Damaged bool
	// Drilled is set if an etcd has been started with the backup. Differs is set if that etcd had different data. The
	// backup then counts as neither verified nor drilled until a drill succeeds.
	Drilled, Differs bool
}

// Good reports whether the backup counts, that is, whether it is neither suspect nor damaged.
func (b Backup) Good() bool { return !b.Suspect && !b.Damaged }

// ID returns the slot, which identifies the backup among the backups of its cluster.
func (b Backup) ID() string { return SlotID(b.Slot) }

// SlotID formats a slot.
func SlotID(slot time.Time) string { return slot.UTC().Format(decide.SlotLayout) }

// ParseSlot parses the output of SlotID.
func ParseSlot(id string) (time.Time, error) {
	slot, err := time.Parse(decide.SlotLayout, id)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a backup: use the time of a backup, such as "+
			"%s", id, "20261122t180000z")
	}
	return slot, nil
}

func (b Backup) dir() string { return b.Cluster.dir() + b.ClusterID + "/" }

// stem returns the common prefix of the names of the backup's metadata.
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
func (b Backup) differsName() string  { return b.stem() + ".differs.json" }

// markNames returns the names of the backup's marks. The marks that override others come last, because they must be
// deleted last.
func (b Backup) markNames() []string {
	return []string{b.drilledName(), b.verifiedName(), b.differsName(), b.damagedName()}
}

// Listing contains all backups and all data of the requested clusters in a store.
type Listing struct {
	// Backups are sorted by cluster, cluster ID and time.
	Backups []Backup
	// Data maps the names of stored data to their slots. Data that no manifest names was left behind or is still being
	// uploaded.
	Data map[string]time.Time
	// marks maps the stem of each backup to the names of all its metadata, including its manifest.
	marks map[string][]string
}

var (
	namePart = `[a-z0-9](?:[-a-z0-9]*[a-z0-9])?`
	inStore  = regexp.MustCompile(`^(` + namePart + `)/(` + namePart + `)/([0-9a-f]{16})/(\d{8}t\d{6}z)(.+)$`)
	dataRest = regexp.MustCompile(`^-\d{1,19}-[0-9a-f]{8}\.db(?:\.zst)?(?:\.age)?$`)
)

// List lists the backups of a cluster, or of all clusters if the cluster's name is empty.
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
	marks := map[Backup][]string{} // the metadata of each backup
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
			backup.Damaged = slices.Contains(said, ".damaged.json")
			backup.Differs = slices.Contains(said, ".differs.json")
			backup.Verified = !backup.Differs && slices.Contains(said, ".verified.json")
			backup.Drilled = !backup.Differs && slices.Contains(said, ".drilled.json")
			listing.Backups = append(listing.Backups, backup)
		}
	}
	slices.SortFunc(listing.Backups, func(a, b Backup) int { return strings.Compare(a.stem(), b.stem()) })
	return listing
}

// Until returns the listing without backups of later slots, so that backups taken with a wrong clock do not mislead
// callers whose clock is right.
func (l Listing) Until(now time.Time) Listing {
	l.Backups = slices.DeleteFunc(slices.Clone(l.Backups), func(b Backup) bool { return b.Slot.After(now) })
	return l
}

// Newest returns the newest good backup of any cluster ID, and reports whether one exists.
func (l Listing) Newest() (Backup, bool) {
	var newest Backup
	for _, b := range l.Backups {
		if b.Good() && b.Slot.After(newest.Slot) {
			newest = b
		}
	}
	return newest, !newest.Slot.IsZero()
}

// Revisions returns the revisions of the backups according to the names of their data, without reading manifests. If
// the names in a slot disagree, Revisions omits the backup, because only its manifest contains the right revision.
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

// At returns the backups of a slot. There are several if the cluster had several IDs at that time. Suspect backups are
// returned only if there are no other backups.
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

// isData reports whether a name in a store is the name of data.
func isData(name string) bool {
	parts := inStore.FindStringSubmatch(name)
	return parts != nil && dataRest.MatchString(parts[5])
}

// isDataName reports whether a file next to a manifest of the given slot may be the manifest's data.
func isDataName(name, slot string) bool {
	return path.Base(name) == name && strings.HasPrefix(name, slot) && dataRest.MatchString(name[len(slot):])
}

var inLayout = regexp.MustCompile(`^` + namePart + `(?:/` + namePart + `(?:/[0-9a-f]{16})?)?$`)

// isDirectoryName reports whether a directory with this name in a store can contain backups.
func isDirectoryName(name string) bool { return inLayout.MatchString(name) }

// listIrregular returns the names to list for something that is not a regular file and therefore has no content. It
// assumes the worst: if a manifest or a damage mark is not a regular file, the backup counts as damaged. The mark of a
// failed drill counts as well. All other marks, and data, are omitted.
func listIrregular(name string) []string {
	stem, isMetadata := strings.CutSuffix(name, ".json")
	switch kind := path.Ext(stem); {
	case !isMetadata, kind == ".verified", kind == ".drilled":
		return nil
	case kind == ".damaged", kind == ".differs":
		return []string{name}
	}
	return []string{name, stem + ".damaged.json"}
}

var wholeName = regexp.MustCompile(`^` + namePart + `$`)

// IsName reports whether text can be the name of a namespace or a cluster.
func IsName(text string) bool { return len(text) <= 253 && wholeName.MatchString(text) }
