package podstate

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// Reread returns what a backup Job has found when rereading stored backups, from the newest pod with a result, or nil
// if there is no plausible one.
func Reread(job *batchv1.Job, pods []*corev1.Pod, now time.Time) *decide.Reread {
	for r := range results(byAge(pods), objects.RereadContainer, result.ParseReread) {
		if r.At.Before(job.CreationTimestamp.Add(-clockSkew)) {
			continue
		}
		seen := &decide.Reread{
			Job: job.Name, At: r.At.Truncate(time.Second), Backups: r.Backups, Read: r.Read,
			Oldest: r.Oldest.Truncate(time.Second), Damaged: r.Damaged, More: r.More, Unread: r.Unread,
		}
		if seen.CanHaveBeen(now) {
			return seen
		}
	}
	return nil
}
