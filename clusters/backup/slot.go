package backup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/reconcile/decide"
)

// The minutes in a Job's name are accepted if a CronJob can plausibly have set them. A CronJob catches up on the latest
// missed scheduled time, which may be a month ago, and clocks may differ.
const (
	maxSlotAge   = 32 * 24 * time.Hour
	maxSlotAhead = 10 * time.Minute
)

// ofMinute matches the names that a CronJob gives its Jobs: the CronJob's name, followed by the scheduled time in
// minutes since 1970 (getJobName in Kubernetes' pkg/controller/cronjob/cronjob_controllerv2.go). The number has 8
// digits until the year 2160.
var ofMinute = regexp.MustCompile(`-(\d{8,9})$`)

// SlotOfJob returns the scheduled time of a CronJob's Job. This time is the slot of the backup, whichever pod takes the
// backup and whenever it does. SlotOfJob returns false for a Job with any other kind of name.
func SlotOfJob(name string, now time.Time) (time.Time, bool) {
	found := ofMinute.FindStringSubmatch(name)
	if found == nil {
		return time.Time{}, false
	}
	minutes, err := strconv.ParseInt(found[1], 10, 64)
	slot := time.Unix(minutes*60, 0).UTC()
	if err != nil || slot.Before(now.Add(-maxSlotAge)) || slot.After(now.Add(maxSlotAhead)) {
		return time.Time{}, false
	}
	return slot, true
}

// Find returns an existing backup of the slot, or nil if no valid backup exists. Such a backup may exist because an
// earlier pod of the same Job was killed before it could report it. Find first asks a quorum for the cluster ID,
// because a different cluster of the same name has its own history.
func Find(ctx context.Context, from Source, in store.Bucket, o Order) (*store.Manifest, error) {
	if o.Fresh {
		return nil, nil
	}
	id, err := from.ClusterID(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.accept(id); err != nil {
		return nil, err
	}
	of := store.Backup{Cluster: o.Cluster, ClusterID: hexadecimal(id), Slot: o.slot()}
	_, earlier, err := placeOf(ctx, in, of, false)
	if err != nil {
		return nil, fmt.Errorf("look for a backup of %s: %w", of.ID(), err)
	}
	return earlier, nil
}

// placeOf returns the slot in which to store a backup: the requested slot, or the next free second. An invalid backup
// does not prevent a new one, but its names cannot be reused. placeOf returns an existing valid backup as earlier,
// unless a fresh backup is required. It returns an error if the next mostOccupied seconds are not free either.
func placeOf(
	ctx context.Context, b store.Bucket, of store.Backup, fresh bool,
) (place time.Time, earlier *store.Manifest, err error) {
	requested := of
	for ; of.Slot.Sub(requested.Slot) <= mostOccupied; of.Slot = of.Slot.Add(time.Second) {
		m, err := store.ReadUseful(ctx, b, of)
		switch {
		case errors.Is(err, store.ErrUseless):
		case errors.Is(err, store.ErrNotFound):
			return of.Slot, nil, nil
		case err != nil:
			return time.Time{}, nil, err
		case !fresh:
			return of.Slot, &m, nil
		}
	}
	return time.Time{}, nil, fmt.Errorf("backup %s and the backups of the next %s exist but cannot be used; delete "+
		"their manifests, and check who can write to the store", requested.ID(), mostOccupied)
}

// mostOccupied is the maximum difference between the requested slot of a backup and its slot. With more backups than
// that in consecutive seconds, another user of the store is planting manifests.
const mostOccupied = time.Minute

func (o Order) slot() time.Time { return o.Slot.UTC().Truncate(time.Second) }

// hexadecimal formats a cluster ID as in the names in a store.
func hexadecimal(id decide.ID) string { return fmt.Sprintf("%016x", uint64(id)) }
