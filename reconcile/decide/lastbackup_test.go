package decide

import (
	"testing"
	"time"
)

// TestLastBackupOfServingClusterExpires checks that a final backup that has become too old while the cluster serves does
// not count again once someone else has scaled the StatefulSet to zero: clients may have written since.
func TestLastBackupOfServingClusterExpires(t *testing.T) {
	s := healthy(3)
	s.Generation = 2
	s.Declared.Lifecycle, s.Declared.Retention, s.Declared.BacksUpBeforeDeletion = Deleted, Delete, true
	s.Declared.BackupDeadline = time.Hour
	s.Backups.BeforeDeletion = &Backup{Generation: 2, ClusterID: s.Record.ClusterID, StartedAt: s.Now.Add(-time.Minute)}
	if s.BackupBeforeDeletion() == nil || s.lacksLastBackup() {
		t.Error("a recent backup does not count")
	}
	s.Backups.BeforeDeletion.StartedAt = s.Now.Add(-5 * 24 * time.Hour)
	s.Backups.BeforeDeletion = s.BackupBeforeDeletion() // as the next pass reads it from the status
	s.Objects.RunsReplicas, s.Membership = 0, Membership{Why: "no pods"}
	for i := range s.Replicas {
		s.Replicas[i].Pod, s.Replicas[i].ClusterID = PodAbsent, 0
	}
	if d := Decide(s); !s.lacksLastBackup() || d.Verdict != Block {
		t.Errorf("the volumes are deleted because of a backup that is 5 days old: %s %v", d.Rule, d.Action)
	}
}
