package decide

import (
	"strings"
	"testing"
	"time"
)

// TestNewestBackupHasItsName checks that the newest backup is named as in the store, after its slot, not after the time
// at which it started.
func TestNewestBackupHasItsName(t *testing.T) {
	s := State{Name: "a", Record: Record{ClusterID: 0xc1}}
	slot := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	s.Backups.Last = &Backup{ClusterID: s.Record.ClusterID, Slot: slot, StartedAt: slot.Add(2 * time.Second), Revision: 900}
	if said := s.describeLoss(); !strings.HasSuffix(said, "; newest backup: 20261122t180000z, revision 900") {
		t.Error(said)
	}
}
