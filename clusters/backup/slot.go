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

// A minute that a Job is named after is believed if a CronJob can have meant it now: it makes up for
// the newest time of its schedule that it has missed, which may be a month ago, and clocks differ.
const (
	maxSlotAge   = 32 * 24 * time.Hour
	maxSlotAhead = 10 * time.Minute
)

// ofMinute is how a CronJob names its Jobs: after itself, and the minutes from 1970 to the time of its
// schedule that the Job is for (getJobName in Kubernetes' pkg/controller/cronjob/cronjob_controllerv2.go).
// There are 8 digits until the year 2160.
var ofMinute = regexp.MustCompile(`-(\d{8,9})$`)

// SlotOfJob is the time that a Job of a CronJob is for: the slot of its backup, whichever of its pods
// takes it, and however late. It is false for a Job of another name.
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

// Find looks for a backup of the slot that was taken earlier, as by a pod of the same Job that was
// killed before it could say so: nil if there is none that counts. Which cluster it has to be of is
// asked of a quorum first: another one of the same name has a history of its own.
func Find(ctx context.Context, from Source, in store.Bucket, o Order) (*store.Manifest, error) {
	if o.Fresh {
		return nil, nil
	}
	id, err := from.ClusterID(ctx)
	if err != nil {
		return nil, err
	}
	of := store.Backup{Cluster: o.Cluster, ClusterID: hexadecimal(id), Slot: o.slot()}
	_, earlier, err := placeOf(ctx, in, of, false)
	if err != nil {
		return nil, fmt.Errorf("look for a backup of %s: %w", of.ID(), err)
	}
	return earlier, nil
}

// placeOf finds where a backup is to be stored: the slot, or the next second that is free. What is
// there and counts for nothing has its name for good, and is no reason to have no backup. One that
// counts is returned, unless there has to be a fresh one.
func placeOf(
	ctx context.Context, b store.Bucket, of store.Backup, fresh bool,
) (place time.Time, earlier *store.Manifest, err error) {
	for ; ; of.Slot = of.Slot.Add(time.Second) {
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
}

func (o Order) slot() time.Time { return o.Slot.UTC().Truncate(time.Second) }

// hexadecimal is how a cluster ID is written in a store.
func hexadecimal(id decide.ID) string { return fmt.Sprintf("%016x", uint64(id)) }
