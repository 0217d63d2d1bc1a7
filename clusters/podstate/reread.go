package podstate

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// Reread is what a Job that backs up has found when it read stored backups again, by what its newest pod that did has
// left in its status; nil if none has, or if that cannot be true by now.
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
