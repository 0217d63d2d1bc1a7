package status

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// backedUp returns a cluster that was created two days ago and declares a daily backup at three o'clock with a deadline
// of an hour.
func backedUp() *v1alpha1.EtcdCluster {
	live := liveCluster()
	live.CreationTimestamp = metav1.NewTime(noon.Add(-48 * time.Hour))
	live.Spec.Backup = &v1alpha1.BackupSpec{Schedule: "0 3 * * *", TimeZone: "Etc/UTC", Deadline: "1h", Verify: v1alpha1.VerifyEvery}
	return live
}

// of returns a verified backup of cluster c1 that was taken at its slot.
func of(slot time.Time) *decide.Backup {
	return &decide.Backup{Job: "j", Slot: slot, StartedAt: slot.Add(2 * time.Second), FinishedAt: slot.Add(9 * time.Second), ClusterID: 0xc1,
		Revision: 7, Bytes: 9, Verified: true, To: "s3://b"}
}

func TestBackupConditions(t *testing.T) {
	three := time.Date(noon.Year(), noon.Month(), noon.Day(), 3, 0, 0, 0, time.UTC)
	unverified := of(three)
	unverified.Verified = false
	other := of(three)
	longAgo := of(three.Add(-time.Minute))
	longAgo.FinishedAt = three.Add(time.Hour)
	other.ClusterID = 0xc9
	failed := decide.BackupJob{Name: "f", Phase: decide.JobFailed, CreatedAt: three.Add(time.Second), Message: "no"}
	hourly := func(c *v1alpha1.EtcdCluster) { c.Spec.Backup.Schedule = "0 * * * *" }
	tests := []struct {
		name       string
		at         time.Time
		change     func(*v1alpha1.EtcdCluster)
		seen       decide.Backups
		stale      string // the status and reason of the condition
		unverified string
	}{
		{"in time", noon, nil, decide.Backups{Last: of(three)}, "False Recent", "False Verified"},
		{"late, and it may still come", three.Add(70 * time.Minute), nil, decide.Backups{Last: of(three.Add(-24 * time.Hour))}, "False Recent", "False Verified"},
		{"late", three.Add(70*time.Minute + time.Second), nil, decide.Backups{Last: of(three.Add(-24 * time.Hour)), Jobs: []decide.BackupJob{failed}}, "True Overdue", "False Verified"},
		{"made up for later", noon, nil, decide.Backups{Last: of(noon.Add(-time.Minute))}, "False Recent", "False Verified"},
		{"every hour, and none for long", noon.Add(time.Minute), hourly, decide.Backups{Last: of(three)}, "True Overdue", "False Verified"},
		{"every hour, and none at all", noon.Add(time.Minute), hourly, decide.Backups{}, "True NoBackup", ""},
		{"every hour, and the newest may still come", noon.Add(time.Minute), hourly, decide.Backups{Last: of(noon.Add(-time.Hour))}, "False Recent", "False Verified"},
		{"of another cluster", noon, nil, decide.Backups{Last: other}, "True Overdue", ""},
		{"none yet", noon, func(c *v1alpha1.EtcdCluster) { c.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }, decide.Backups{}, "False Pending", ""},
		{"declared since", noon, nil, decide.Backups{Since: noon.Add(-time.Hour)}, "False Pending", ""},
		{"declared long since", noon, nil, decide.Backups{Since: noon.Add(-2 * time.Hour)}, "True NoBackup", ""},
		{"the CronJob is new, and the newest backup in time", noon, nil, decide.Backups{Since: noon.Add(-2 * time.Hour), Last: of(three)}, "False Recent", "False Verified"},
		{"the CronJob is new, and the newest backup is not in time", noon, nil, decide.Backups{Since: noon.Add(-2 * time.Hour), Last: of(three.Add(-24 * time.Hour))}, "True Overdue", "False Verified"},
		{"the CronJob is new, and had no time yet", noon, nil, decide.Backups{Since: noon.Add(-time.Hour), Last: of(three.Add(-24 * time.Hour))}, "False Recent", "False Verified"},
		{"of tomorrow", noon, nil, decide.Backups{Last: of(noon.Add(24 * time.Hour))}, "True Overdue", "False Verified"},
		{"the CronJob is of tomorrow", noon, nil, decide.Backups{Since: noon.Add(24 * time.Hour), Last: of(three.Add(-24 * time.Hour))}, "True Overdue", "False Verified"},
		{"stored in time, and begun before", three.Add(70*time.Minute + time.Second), nil, decide.Backups{Last: longAgo}, "True Overdue", "False Verified"},
		{"never", noon, nil, decide.Backups{}, "True NoBackup", ""},
		{"not read back", noon, nil, decide.Backups{Last: unverified}, "False Recent", "True NotVerified"},
		{"about to be read back", noon, nil, decide.Backups{Last: unverified, Jobs: []decide.BackupJob{{Name: "j", Phase: decide.JobRuns}}}, "False Recent", ""},
		{"not to be read back", noon, func(c *v1alpha1.EtcdCluster) { c.Spec.Backup.Verify = v1alpha1.VerifyNever }, decide.Backups{Last: unverified}, "False Recent", ""},
		{"suspended", noon, func(c *v1alpha1.EtcdCluster) { c.Spec.Backup.Suspend = true }, decide.Backups{}, "", ""},
		{"not declared", noon, func(c *v1alpha1.EtcdCluster) { c.Spec.Backup = nil }, decide.Backups{Last: of(three)}, "", ""},
		{"not seen", noon, nil, decide.Backups{Hidden: "forbidden"}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			live, entry := backedUp(), healthyEntry()
			if test.change != nil {
				test.change(live)
			}
			entry.State.Now, entry.State.Backups = test.at, test.seen
			entry.State.Declared = targets.Target{Cluster: *live}.Declared()
			entry.State.Declared.Lifecycle = decide.Running
			b := &entry.State.Backups
			b.Due, b.Overdue = Overdue(live, live, entry.State)
			status := newStatus(live, live, entry, fetchedMain)
			said := func(kind string) string {
				c := meta.FindStatusCondition(status.Conditions, kind)
				if c == nil {
					return ""
				}
				return string(c.Status) + " " + c.Reason
			}
			if stale, unverified := said(v1alpha1.ConditionBackupStale), said(v1alpha1.ConditionBackupUnverified); stale != test.stale || unverified != test.unverified {
				t.Errorf("%s, %s", stale, unverified)
			}
		})
	}
}

// TestStaleConditionSaysWhyJobHasNotSucceeded checks that the condition shows what an active Job is waiting for, or why
// its last attempt failed, as long as no backup is in time.
func TestStaleConditionSaysWhyJobHasNotSucceeded(t *testing.T) {
	jobs := []decide.BackupJob{
		{Name: "older", Phase: decide.JobRuns, CreatedAt: noon.Add(-time.Hour), Message: "no"},
		{Name: "newer", Phase: decide.JobRuns, CreatedAt: noon, Message: "secret \"s3\" not found"},
		{Name: "ended", Phase: decide.JobSucceeded, CreatedAt: noon.Add(time.Minute), Message: "no"},
	}
	const why = `; Job newer has not succeeded yet: secret "s3" not found`
	for what, c := range map[string]struct {
		seen decide.Backups
		want string
	}{
		"none is due yet": {decide.Backups{Jobs: jobs, Due: noon}, "the first backup has been due since 2026-11-01T12:00:00Z" + why},
		"none":            {decide.Backups{Jobs: jobs, Due: noon, Overdue: true}, "no backup has been taken yet" + why},
		"in time":         {decide.Backups{Jobs: jobs, Last: of(noon)}, "the newest backup is from 2026-11-01T12:00:00Z"},
		"no Job":          {decide.Backups{Overdue: true}, "no backup has been taken yet"},
	} {
		if _, message, _ := staleCondition(nil, c.seen); message != c.want {
			t.Errorf("%s: %s", what, message)
		}
	}
}

// TestBackupIsRemembered checks that the newest backup in the status is read back unchanged and is kept when its Job is
// deleted. The same applies to a failure, until a backup succeeds.
func TestBackupIsRemembered(t *testing.T) {
	live, entry := backedUp(), healthyEntry()
	entry.State.Declared.Lifecycle = decide.Running
	failed := decide.BackupJob{Name: "f", Phase: decide.JobFailed, CreatedAt: noon.Add(-time.Hour), EndedAt: noon.Add(-time.Minute), Message: "no"}
	entry.State.Backups = decide.Backups{Last: of(noon.Add(-9 * time.Hour)), Jobs: []decide.BackupJob{failed}}
	first := newStatus(live, live, entry, fetchedMain)
	events := backupEvents(live, first, kube.Event{})
	if first.Backup.Failed == nil || first.Backup.Failed.Job != "f" || len(events) != 1 || !strings.Contains(events[0].Note, "Job f: no") || !events[0].Warning {
		t.Errorf("got %+v, %+v", first.Backup, events)
	}
	live.Status = first
	if last, _ := LastBackup(live, noon); last == nil || *last != *entry.State.Backups.Last {
		t.Errorf("got %+v, want %+v", last, entry.State.Backups.Last)
	}
	last, _ := LastBackup(live, noon)
	entry.State.Backups = decide.Backups{Last: last}
	again := newStatus(live, live, entry, fetchedMain)
	if WorthWriting(first, again) || len(backupEvents(live, again, kube.Event{})) > 0 {
		t.Errorf("without its Jobs, it is different: %+v", again.Backup)
	}
	if last, _ := LastBackup(live, noon.Add(-10*time.Hour)); last != nil {
		t.Errorf("a future backup counts: %+v", last)
	}
	entry.State.Backups.Last = of(noon)
	if cured := newStatus(live, live, entry, fetchedMain); cured.Backup.Failed != nil || !WorthWriting(again, cured) {
		t.Errorf("got %+v", cured.Backup)
	}
}

// TestBackupBeforeDeletionIsRemembered checks that the backup on which a deletion relies is kept in the status when the
// Jobs are deleted, until a different generation is declared.
func TestBackupBeforeDeletionIsRemembered(t *testing.T) {
	live, entry := backedUp(), healthyEntry()
	s := &entry.State
	s.Generation, s.Declared.Lifecycle, s.Declared.BacksUpBeforeDeletion, s.Declared.BackupTo = 2, decide.Deleted, true, "s3://b"
	stored := of(noon.Add(-time.Minute))
	stored.Job, stored.ClusterID, stored.Generation, stored.FinishedAt = "a-backup-gen2", s.Record.ClusterID, 2, noon.Add(-time.Minute)
	s.Now, s.Backups = noon, decide.Backups{Jobs: []decide.BackupJob{{Name: stored.Job, Generation: 2, Phase: decide.JobSucceeded, CreatedAt: stored.StartedAt, Backup: stored}}}
	live.Status = newStatus(live, live, entry, fetchedMain)
	_, noted := LastBackup(live, noon)
	if noted == nil || *noted != *stored {
		t.Fatalf("got %+v, want %+v", noted, stored)
	}
	if _, early := LastBackup(live, noon.Add(-time.Hour)); early != nil {
		t.Errorf("a future backup counts: %+v", early)
	}
	s.Backups = decide.Backups{BeforeDeletion: noted}
	if again := newStatus(live, live, entry, fetchedMain); again.Backup == nil || again.Backup.BeforeDeletion == nil {
		t.Errorf("without its Job, it is forgotten: %+v", again.Backup)
	}
	s.Generation = 3
	if later := newStatus(live, live, entry, fetchedMain); later.Backup != nil && later.Backup.BeforeDeletion != nil {
		t.Errorf("it is noted for another generation: %+v", later.Backup)
	}
}

// TestDrillIsRemembered checks that the newest drill, and a later failed drill, are kept in the status when their Jobs
// are deleted. Each failure causes one event.
func TestDrillIsRemembered(t *testing.T) {
	live, entry := backedUp(), healthyEntry()
	done := &decide.Drill{Job: "a-drill-1", Slot: noon.Add(-2 * time.Hour), ClusterID: 0xc1, EtcdVersion: "3.6.16", FinishedAt: noon.Add(-time.Hour), Seconds: 42, Bytes: 7}
	failed := &decide.DrillFailure{Job: "a-drill-2", At: noon.Add(-time.Minute), Message: "prepare: no"}
	entry.State.Backups = decide.Backups{Drill: done, DrillFailed: failed}
	first := newStatus(live, live, entry, fetchedMain)
	events := backupEvents(live, first, kube.Event{})
	if len(events) == 0 || events[0].Reason != "DrillFailed" || events[0].Note != "Job a-drill-2: prepare: no" || !events[0].Warning {
		t.Errorf("got %+v, %+v", first.Backup, events)
	}
	live.Status = first
	was, faulty := LastDrill(live, noon)
	if was == nil || *was != *done || faulty == nil || *faulty != *failed {
		t.Errorf("got %+v, %+v", was, faulty)
	}
	entry.State.Backups = decide.Backups{Drill: was, DrillFailed: faulty}
	again := newStatus(live, live, entry, fetchedMain)
	if WorthWriting(first, again) || len(backupEvents(live, again, kube.Event{})) > 0 {
		t.Errorf("without its Jobs, it is different: %+v", again.Backup)
	}
	entry.State.Backups.DrillFailed = nil
	if cured := newStatus(live, live, entry, fetchedMain); cured.Backup.DrillFailed != nil || cured.Backup.Drill == nil || !WorthWriting(again, cured) {
		t.Errorf("got %+v", cured.Backup)
	}
	if was, faulty := LastDrill(live, noon.Add(-2*time.Hour)); was != nil || faulty == nil {
		t.Errorf("a drill of the future counts: %+v, %+v", was, faulty)
	}
	live.Status.Backup.Drill.ClusterID = "x"
	if was, _ := LastDrill(live, noon); was != nil {
		t.Errorf("its cluster is unknown: %+v", was)
	}
}

// TestRestoredFrom checks that the origin of a restored cluster is kept as long as the cluster ID does not change.
func TestRestoredFrom(t *testing.T) {
	for _, test := range []struct{ record, old, oldID, want string }{
		{"", "", "", ""},
		{"tuesday", "", "", "tuesday"},
		{"", "tuesday", "c1", "tuesday"}, // the record was lost
		{"", "tuesday", "c9", ""},
		{"", "tuesday", "", ""},
	} {
		live, entry := backedUp(), healthyEntry()
		entry.State.Record.RestoredFrom = test.record
		live.Status.RestoredFrom, live.Status.ClusterID = test.old, test.oldID
		if got := newStatus(live, live, entry, fetchedMain).RestoredFrom; got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
