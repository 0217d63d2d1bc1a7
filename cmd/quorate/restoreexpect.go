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
// --lost-cluster-id, the mark is replaced before an unreadable member is, so --expect cannot be used.
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

// sameSnapshot returns a blockedError if restored data is not from the backup in --expect. A different backup of the
// same revision is not accepted either: changes to users do not raise the revision, and an earlier backup may be
// unproven.
func (f *restoreFlags) sameSnapshot(told result.Restored) error {
	w := f.wanted
	if w == nil || told.SourceClusterID == w.ClusterID && told.Revision == w.Revision && told.SHA256 == w.SHA256 {
		return nil
	}
	return blockedError{fmt.Errorf("%s holds data from a different backup, of cluster %s at revision %d; nothing was "+
		"changed. To restore cluster %s at revision %d, delete the directory (in Kubernetes, the volume claim)",
		f.r.DataDir, snapshot.DisplayID(told.SourceClusterID), told.Revision, snapshot.DisplayID(w.ClusterID),
		w.Revision)}
}
