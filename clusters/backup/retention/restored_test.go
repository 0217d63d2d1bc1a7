package retention

import (
	"slices"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// TestPruneKeepsBackupsBeforeRestore checks that pruning after a restore keeps the original cluster's backups if the
// policy keeps them. In the test, data was accidentally changed three days ago, and the cluster was then restored from
// a backup that already contained the change, so an older backup may be needed. One of the policies does not set last,
// which the CRD allows.
func TestPruneKeepsBackupsBeforeRestore(t *testing.T) {
	all := []store.Backup{backup(time.Minute, "v")}
	for i := 2; i <= 15; i++ {
		all = append(all, backup(time.Duration(i)*days, "ev"))
	}
	for name, p := range map[string]Policy{
		"daily 14":         {Daily: 14, MinAge: days},
		"last 1, weekly 8": {Last: 1, Weekly: 8, MinAge: days},
	} {
		plan := Prune(store.Listing{Backups: all}, p, now)
		if slices.ContainsFunc(plan.Delete, func(b store.Backup) bool { return p.keep(all[1:], nil)[b] }) {
			t.Errorf("%s: backups are deleted that the policy keeps", name)
		}
	}
}
