package status

import (
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestDrillDue checks that drills count as due since the older of the last two drills that should have finished, if the
// CronJob already existed then.
func TestDrillDue(t *testing.T) {
	day := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	three := day.Add(3 * time.Hour) // every day, with a deadline of an hour
	for _, test := range []struct {
		name       string
		change     func(*v1alpha1.EtcdCluster)
		since, now time.Time
		want       time.Time
	}{
		{"before the deadline of today's", nil, day.AddDate(0, 0, -9), three.Add(time.Hour), three.AddDate(0, 0, -2)},
		{"after it", nil, day.AddDate(0, 0, -9), three.Add(2 * time.Hour), three.AddDate(0, 0, -1)},
		{"new", nil, day, three.Add(2 * time.Hour), time.Time{}},
		{"there for one", nil, day.AddDate(0, 0, -1).Add(4 * time.Hour), three.Add(2 * time.Hour), time.Time{}},
		{"there for two", nil, day.AddDate(0, 0, -1), three.Add(2 * time.Hour), three.AddDate(0, 0, -1)},
		{"not declared", func(c *v1alpha1.EtcdCluster) { c.Spec.Backup.Drill = nil }, day.AddDate(0, 0, -9), three, time.Time{}},
		{"no backups", func(c *v1alpha1.EtcdCluster) { c.Spec.Backup = nil }, day.AddDate(0, 0, -9), three, time.Time{}},
		{"no schedule", func(c *v1alpha1.EtcdCluster) { c.Spec.Backup.Drill.Schedule = "often" }, day.AddDate(0, 0, -9), three, time.Time{}},
	} {
		declared := backedUp()
		declared.Spec.Backup.Drill = &v1alpha1.BackupDrill{Schedule: "0 3 * * *"}
		if test.change != nil {
			test.change(declared)
		}
		if got := DrillDue(declared, test.since, test.now); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
