package backup

import (
	"context"
	"errors"
	"fmt"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// ErrChanged is returned if a cluster has changed since it was backed up.
var ErrChanged = errors.New("the cluster has changed since this backup")

// ErrUnproven is returned for a backup whose data a quorum did not confirm.
var ErrUnproven = errors.New("a quorum did not confirm the data of this backup")

// ConfirmUnchanged returns ErrChanged unless the cluster is still at the revision of the backup, and ErrUnproven if the
// data of the backup was not confirmed. A cluster whose revision cannot be determined is not known to be unchanged, so
// any other error is returned as well.
func ConfirmUnchanged(ctx context.Context, from Source, of result.Result) error {
	if of.Unproven != "" {
		return fmt.Errorf("%w: %s", ErrUnproven, of.Unproven)
	}
	id, revision, err := from.CurrentRevision(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("it is unknown whether the cluster has changed: %w", err)
	case hexadecimal(id) != of.ClusterID:
		return fmt.Errorf("%w: it was cluster %s and is now cluster %s", ErrChanged,
			snapshot.DisplayID(of.ClusterID), snapshot.DisplayID(hexadecimal(id)))
	case revision != of.Revision:
		return fmt.Errorf("%w: it was at revision %d and is now at %d. Stop its clients, or wait until its leases have "+
			"expired, and take a new backup", ErrChanged, of.Revision, revision)
	}
	return nil
}
