package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// LastReread returns the last result of rereading stored backups, according to the status, or nil if it is missing or
// from the future.
func LastReread(custom *v1alpha1.EtcdCluster, now time.Time) *decide.Reread {
	if custom.Status.Backup == nil || custom.Status.Backup.Reread == nil {
		return nil
	}
	r := custom.Status.Backup.Reread
	seen := &decide.Reread{
		Job: r.Job, At: r.At.UTC(), Backups: r.Backups, Read: r.Read, More: r.More, Unread: r.Unread,
	}
	for _, id := range r.Damaged {
		if result.IsBackupName(id) {
			seen.Damaged = append(seen.Damaged, id)
		}
	}
	if r.Oldest != nil {
		seen.Oldest = r.Oldest.UTC()
	}
	if !seen.CanHaveBeen(now) {
		return nil
	}
	return seen
}

// rereadStatus returns the status of rereading.
func rereadStatus(seen *decide.Reread) *v1alpha1.RereadResult {
	if seen == nil {
		return nil
	}
	r := &v1alpha1.RereadResult{
		Job: seen.Job, At: metav1.NewTime(seen.At), Backups: seen.Backups, Read: seen.Read,
		Damaged: slices.Clone(seen.Damaged), More: seen.More, Unread: visible.Line(seen.Unread),
	}
	if !seen.Oldest.IsZero() {
		oldest := metav1.NewTime(seen.Oldest)
		r.Oldest = &oldest
	}
	return r
}

// rereadCondition reports whether stored backups are damaged: Unknown if the store could never be listed. The reason is
// empty if backups have not been reread.
func rereadCondition(seen *decide.Reread) (is metav1.ConditionStatus, reason, message string) {
	damage := seen.DescribeDamage()
	switch {
	case seen == nil:
		return "", "", ""
	case damage != "":
		return metav1.ConditionTrue, "Damaged", damage
	case !seen.KnowsDamage():
		return metav1.ConditionUnknown, "Unknown", "what is stored could not be looked at: " + seen.Unread
	}
	return metav1.ConditionFalse, "Sound",
		fmt.Sprintf("of %d stored backups, none is known to be damaged", seen.Backups)
}
