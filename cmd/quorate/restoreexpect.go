package main

import (
	"errors"
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

// stale reports whether restored data differs from the backup in --expect. Snapshots of different members may differ
// in their bytes even if they hold the same data, so their checksums are not compared.
func (f *restoreFlags) stale(told result.Restored) bool {
	return f.wanted != nil && (told.SourceClusterID != f.wanted.ClusterID || told.Revision != f.wanted.Revision)
}
