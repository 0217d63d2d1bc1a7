package backup

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// ErrChanged is returned if the backed-up cluster has changed since the backup was taken.
var ErrChanged = errors.New("the source has changed since this backup")

// ConfirmUnchanged returns ErrChanged unless the cluster is still at the revision of the backup. A cluster whose
// revision cannot be determined is not known to be unchanged, so any other error is returned as well.
func ConfirmUnchanged(ctx context.Context, from Source, m store.Manifest) error {
	id, revision, err := from.CurrentRevision(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("it is unknown whether the source has changed: %w", err)
	case hexadecimal(id) != m.ClusterID:
		return fmt.Errorf("%w: it was cluster %s and is now cluster %x", ErrChanged,
			snapshot.DisplayID(m.ClusterID), uint64(id))
	case revision != m.Snapshot.Revision:
		return fmt.Errorf("%w: it was at revision %d and is now at %d. Stop its clients, or wait until its leases "+
			"have expired, and repeat", ErrChanged, m.Snapshot.Revision, revision)
	}
	return nil
}
