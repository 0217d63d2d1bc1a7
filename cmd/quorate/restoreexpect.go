package main

import (
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// checkExpect reads the result of the backup to restore. The result is not part of the request in the mark, because
// each attempt may take a new backup. Therefore, a mark must always describe the data next to it. With
// --lost-cluster-id, a member that cannot be read is replaced, and its mark first, so --expect cannot be used.
func (f *restoreFlags) checkExpect(args []string) error {
	switch {
	case f.expect == "":
		return nil
	case !f.once:
		return usageError{errors.New("--expect requires --once")}
	case f.lostID != "":
		return usageError{errors.New("--expect cannot be combined with --lost-cluster-id")}
	case len(args) > 1:
		return usageError{errors.New("--expect already names the backup: remove the BACKUP argument")}
	case slices.Contains(f.results, f.expect):
		return usageError{errors.New("--expect and --result must not name the same file")}
	}
	wanted, err := readResult("expect", f.expect)
	f.wanted = &wanted
	return err
}

// sameSource returns a blockedError if restored data is not a copy of the backup in --expect. Snapshots of different
// members may differ in their bytes even if they hold the same data, so their checksums are not compared.
func (f *restoreFlags) sameSource(told result.Restored) error {
	const again = "delete the directory (in Kubernetes, the volume claim) and restore again"
	switch w := f.wanted; {
	case w == nil:
		return nil
	case told.SourceClusterID != w.ClusterID:
		return blockedError{fmt.Errorf("%s holds a copy of cluster %s, but the source is now cluster %s: "+again,
			f.r.DataDir, snapshot.DisplayID(told.SourceClusterID), snapshot.DisplayID(w.ClusterID))}
	case told.Revision != w.Revision:
		return blockedError{fmt.Errorf("%s holds a copy at revision %d, but the source is now at revision %d: "+again,
			f.r.DataDir, told.Revision, w.Revision)}
	}
	return nil
}
