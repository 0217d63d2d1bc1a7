package status

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// LastBackup returns the newest successful backup according to the status, and the backup on which a deletion relies.
// Each is nil if it is missing or from the future.
func LastBackup(custom *v1alpha1.EtcdCluster, now time.Time) (last, beforeDeletion *decide.Backup) {
	if custom.Status.Backup == nil {
		return nil, nil
	}
	return backupOf(custom.Status.Backup.Last, now), backupOf(custom.Status.Backup.BeforeDeletion, now)
}

func backupOf(r *v1alpha1.BackupResult, now time.Time) *decide.Backup {
	if r == nil {
		return nil
	}
	b := &decide.Backup{
		Job: r.Job, Generation: r.Generation, Slot: r.Slot.UTC(), StartedAt: r.StartedAt.UTC(),
		FinishedAt: r.FinishedAt.UTC(), To: r.To, Revision: r.Revision, Bytes: r.Bytes, Verified: r.Verified,
	}
	if b.ClusterID.UnmarshalText([]byte(r.ClusterID)) != nil || !b.CanHaveBeen(now) {
		return nil // of an unknown cluster, or from the future
	}
	return b
}

func backupResult(b *decide.Backup) *v1alpha1.BackupResult {
	if b == nil {
		return nil
	}
	return &v1alpha1.BackupResult{
		Job: b.Job, Generation: b.Generation, Slot: metav1.NewTime(b.Slot), To: b.To,
		StartedAt: metav1.NewTime(b.StartedAt), FinishedAt: metav1.NewTime(b.FinishedAt),
		ClusterID: b.ClusterID.String(), Revision: b.Revision, Bytes: b.Bytes, Verified: b.Verified,
	}
}

// backupStatus returns the status of the backups, or nil if it is empty.
func backupStatus(old *v1alpha1.BackupStatus, s decide.State) *v1alpha1.BackupStatus {
	seen := s.Backups
	status := &v1alpha1.BackupStatus{
		Last: backupResult(seen.Last), BeforeDeletion: backupResult(s.BackupBeforeDeletion()),
	}
	if failed := seen.NewestFailure(); failed != nil {
		status.Failed = &v1alpha1.BackupFailure{Job: failed.Name, At: metav1.NewTime(failed.EndedAt),
			Message: printable.Line(failed.Message)}
	} else if old != nil && old.Failed != nil && (seen.Last == nil || seen.Last.StartedAt.Before(old.Failed.At.Time)) {
		status.Failed = old.Failed
	}
	status.Drill, status.DrillFailed = drillStatus(seen)
	if *status == (v1alpha1.BackupStatus{}) {
		return nil
	}
	return status
}

// setBackupConditions sets the conditions that report whether backups are taken on time and are read back.
func setBackupConditions(status *v1alpha1.EtcdClusterStatus, declared *v1alpha1.EtcdCluster, s decide.State) {
	b := declared.Spec.Backup
	if b == nil || s.Declared.Lifecycle != decide.Running || s.Record.ClusterID == 0 {
		for _, kind := range []string{v1alpha1.ConditionBackupStale, v1alpha1.ConditionBackupUnverified} {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
		return
	}
	if s.Backups.Hidden != "" {
		return // the state of the backups is unknown
	}
	set := func(kind, reason, message string, is bool) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: truth(is), Reason: reason, Message: printable.Line(message),
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(s.Now),
		})
	}
	last := s.Backups.Last
	if b.Suspend {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionBackupStale)
	} else {
		reason, message, stale := staleCondition(status.Backup, s.Backups)
		set(v1alpha1.ConditionBackupStale, reason, message, stale)
	}
	unverified, known := s.BackupUnverified()
	switch {
	case last == nil || !s.Declared.VerifiesBackups || last.ClusterID != s.Record.ClusterID:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionBackupUnverified)
	case unverified:
		set(v1alpha1.ConditionBackupUnverified, "NotVerified", "backup "+stamp(last.Slot)+" was not read back"+
			failureOf(status.Backup), true)
	case known:
		set(v1alpha1.ConditionBackupUnverified, "Verified", "backup "+stamp(last.Slot)+" was read back", false)
	} // else it will be verified soon
}

// staleCondition returns the reason and message of the BackupStale condition, and whether a backup is overdue.
func staleCondition(status *v1alpha1.BackupStatus, seen decide.Backups) (reason, message string, stale bool) {
	due, last := stamp(seen.Due), seen.Last
	switch {
	case seen.Overdue && last == nil:
		return "NoBackup", "no backup has been taken yet" + failureOf(status) + delayOf(seen), true
	case seen.Overdue:
		return "Overdue", fmt.Sprintf("the newest backup is from %s, but a newer backup was due at "+
			"%s%s", stamp(last.Slot), due,
			failureOf(status)) + delayOf(seen), true
	case last == nil:
		return "Pending", "the first backup has been due since " + due + delayOf(seen), false
	}
	return "Recent", "the newest backup is from " + stamp(last.Slot), false
}

// Overdue reports whether a backup should have succeeded by now and has not, and when it was due. This is the newest
// scheduled backup whose deadline has passed, or the first backup. Later backups that may still succeed are not
// considered, because a frequent schedule always has one. After a CronJob has been created, a backup counts as missed
// only after the time that one backup may take.
func Overdue(declared, live *v1alpha1.EtcdCluster, s decide.State) (due time.Time, is bool) {
	if declared.Spec.Backup == nil || live == nil {
		return time.Time{}, false
	}
	over := s.Now.Add(-objects.BackupDeadline(declared.Spec.Backup) - decide.LateBackup)
	since := s.Backups.Since
	if since.IsZero() || since.After(s.Now) { // the CronJob should have existed since the custom resource was created
		since = live.CreationTimestamp.UTC()
	}
	last := s.Backups.Last
	if last == nil || last.ClusterID != s.Record.ClusterID || !last.CanHaveBeen(s.Now) {
		return since, since.Before(over)
	}
	when, err := objects.BackupSchedule(declared)
	if err != nil {
		return since, false
	}
	due = when.Newest(over.Add(-time.Nanosecond))
	return due, since.Before(over) && last.Slot.Before(due) && last.StartedAt.Before(due)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// failureOf returns the reason why the newest backup failed, or "".
func failureOf(b *v1alpha1.BackupStatus) string {
	if b == nil || b.Failed == nil {
		return ""
	}
	return fmt.Sprintf("; Job %s failed: %s", b.Failed.Job, cmp.Or(b.Failed.Message, "no reason given"))
}

// delayOf returns why the newest active Job has not succeeded yet, or "".
func delayOf(seen decide.Backups) string {
	delayed := seen.Delayed()
	if delayed == nil {
		return ""
	}
	return fmt.Sprintf("; Job %s has not succeeded yet: %s", delayed.Name, delayed.Message)
}

// backupEvents returns a warning whenever another backup fails or backups become stale.
func backupEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	var events []kube.Event
	event.Warning = true
	if b := status.Backup; b != nil && b.Failed != nil {
		before := custom.Status.Backup
		if before == nil || before.Failed == nil || before.Failed.Job != b.Failed.Job {
			failed := event
			failed.Reason, failed.Note = "BackupFailed",
				fmt.Sprintf("Job %s: %s", b.Failed.Job, cmp.Or(b.Failed.Message, "no reason given"))
			events = append(events, failed)
		}
	}
	events = append(events, drillEvents(custom, status, event)...)
	stale := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBackupStale)
	before := meta.IsStatusConditionTrue(custom.Status.Conditions, v1alpha1.ConditionBackupStale)
	if stale != nil && stale.Status == metav1.ConditionTrue && !before {
		event.Reason, event.Note = v1alpha1.ConditionBackupStale, stale.Message
		events = append(events, event)
	}
	return events
}
