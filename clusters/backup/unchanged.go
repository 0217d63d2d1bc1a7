package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/reconcile/decide"
)

// ErrChanged is returned if a cluster has changed since it was backed up.
var ErrChanged = errors.New("the cluster has changed since this backup")

// ErrUnproven is returned for a backup whose data a quorum did not confirm.
var ErrUnproven = errors.New("a quorum did not confirm the data of this backup")

// ConfirmUnchanged returns ErrChanged unless the cluster is still at the backup's revision, and ErrUnproven if the
// backup's data was not confirmed. If the revision cannot be determined within patience, for example because there is
// no leader, the cluster may have changed, so ConfirmUnchanged returns that error as well.
func ConfirmUnchanged(ctx context.Context, from Source, of result.Result, patience time.Duration) error {
	if of.Unproven != "" {
		return fmt.Errorf("%w: %s. If its revision has been compacted, write any key to the cluster. Then take "+
			"another backup (a restore Job does so by itself)", ErrUnproven, of.Unproven)
	}
	id, revision, err := currentRevision(ctx, from, patience)
	switch {
	case err != nil:
		return fmt.Errorf("cannot determine whether the cluster has changed: %w", err)
	case hexadecimal(id) != of.ClusterID:
		return fmt.Errorf("%w: it was cluster %s and is now cluster %s", ErrChanged,
			snapshot.DisplayID(of.ClusterID), snapshot.DisplayID(hexadecimal(id)))
	case revision != of.Revision:
		return fmt.Errorf("%w: it was at revision %d and is now at %d. Stop its clients, or wait until its leases "+
			"have expired. Then take another backup (a restore Job does so by itself)", ErrChanged, of.Revision,
			revision)
	}
	return nil
}

// currentRevision asks for the cluster ID and the current revision until there is an answer or patience is over.
func currentRevision(ctx context.Context, from Source, patience time.Duration) (decide.ID, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		id, revision, err := from.CurrentRevision(ctx)
		if err == nil {
			return id, revision, nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, err
		case <-time.After(pause):
		}
	}
}

// pause is the time between attempts to determine the revision.
const pause = 500 * time.Millisecond
