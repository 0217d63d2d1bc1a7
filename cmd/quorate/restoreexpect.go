package main

import (
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/backup/result"
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

// stale reports whether restored data must be replaced with the backup in --expect. If the source has not changed, the
// data is usually the same. However, changes to users do not raise the revision, and an earlier backup may have been
// unproven, so data is kept only if it is from the same snapshot. It returns a blockedError if the data is newer.
func (f *restoreFlags) stale(told result.Restored) (bool, error) {
	switch w := f.wanted; {
	case w == nil || told.SourceClusterID == w.ClusterID && told.Revision == w.Revision && told.SHA256 == w.SHA256:
		return false, nil
	case told.SourceClusterID == w.ClusterID && told.Revision > w.Revision:
		return false, blockedError{fmt.Errorf("%s holds a newer copy of the source, at revision %d, than the backup in "+
			"--expect, at revision %d: delete the directory (in Kubernetes, the volume claim) to restore the older copy",
			f.r.DataDir, told.Revision, w.Revision)}
	}
	return true, nil
}
