package decide

import (
	"strings"
	"testing"
	"time"
)

// TestNewestBackupIsNamedAfterSlot checks that a message names the newest backup as the store does: after its slot, not
// after its start time.
func TestNewestBackupIsNamedAfterSlot(t *testing.T) {
	s := State{Name: "a", Record: Record{ClusterID: 0xc1}}
	slot := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	s.Backups.Last = &Backup{ClusterID: s.Record.ClusterID, Slot: slot, StartedAt: slot.Add(2 * time.Second), Revision: 900}
	if said := s.describeLoss(); !strings.HasSuffix(said, "; newest backup: 20261122t180000z, revision 900") {
		t.Error(said)
	}
}
