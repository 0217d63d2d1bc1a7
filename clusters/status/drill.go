package status

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// LastDrill returns the newest completed drill and any later failed drill, according to the status. Each of them is nil
// if it is missing. A completed drill from the future is ignored.
func LastDrill(custom *v1alpha1.EtcdCluster, now time.Time) (done *decide.Drill, failed *decide.DrillFailure) {
	b := custom.Status.Backup
	if b == nil {
		return nil, nil
	}
	if d := b.Drill; d != nil {
		done = &decide.Drill{
			Job: d.Job, Slot: d.Slot.UTC(), EtcdVersion: d.EtcdVersion, FinishedAt: d.FinishedAt.UTC(),
			Seconds: d.Seconds, Bytes: d.Bytes, Uncompared: d.Uncompared,
		}
		if done.ClusterID.UnmarshalText([]byte(d.ClusterID)) != nil || !done.CanHaveBeen(now) {
			done = nil // of an unknown cluster, or from the future
		}
	}
	if f := b.DrillFailed; f != nil {
		failed = &decide.DrillFailure{Job: f.Job, At: f.At.UTC(), Message: f.Message}
	}
	return done, failed
}

// DrillDue returns the time at which the older of the last two drills that should have finished was due. It returns
// zero if drills are not declared or their CronJob is newer than that.
func DrillDue(declared *v1alpha1.EtcdCluster, since, now time.Time) time.Time {
	b := declared.Spec.Backup
	if b == nil || b.Drill == nil {
		return time.Time{}
	}
	when, err := objects.DrillSchedule(declared)
	if err != nil {
		return time.Time{}
	}
	last := when.Newest(now.Add(-objects.BackupDeadline(b) - decide.LateBackup))
	due := when.Newest(last.Add(-time.Nanosecond))
	if last.IsZero() || due.Before(since) {
		return time.Time{}
	}
	return due
}

// drillStatus returns the status of the drills.
func drillStatus(seen decide.Backups) (*v1alpha1.DrillResult, *v1alpha1.BackupFailure) {
	var done *v1alpha1.DrillResult
	if d := seen.Drill; d != nil {
		done = &v1alpha1.DrillResult{
			Job: d.Job, Slot: metav1.NewTime(d.Slot), ClusterID: d.ClusterID.String(), EtcdVersion: d.EtcdVersion,
			FinishedAt: metav1.NewTime(d.FinishedAt), Seconds: d.Seconds, Bytes: d.Bytes,
			Uncompared: printable.Line(d.Uncompared),
		}
	}
	if f := seen.DrillFailed; f != nil {
		return done, &v1alpha1.BackupFailure{Job: f.Job, At: metav1.NewTime(f.At), Message: printable.Line(f.Message)}
	}
	return done, nil
}

// drillEvents returns a warning whenever another drill fails.
func drillEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	if status.Backup == nil || status.Backup.DrillFailed == nil {
		return nil
	}
	failed := status.Backup.DrillFailed
	before := custom.Status.Backup
	if before != nil && before.DrillFailed != nil && before.DrillFailed.Job == failed.Job {
		return nil
	}
	event.Reason = "DrillFailed"
	event.Note = fmt.Sprintf("Job %s: %s", failed.Job, cmp.Or(failed.Message, "no reason given"))
	return []kube.Event{event}
}
