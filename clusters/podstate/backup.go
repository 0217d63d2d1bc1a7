package podstate

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// clockSkew is the maximum time by which a node's clock may be behind the API server's clock.
const clockSkew = 5 * time.Minute

// suspect is the message for a suspect backup.
const suspect = "etcd has found that members hold different data, so the backup is suspect and does not count"

// BackupJob returns the result of a backup Job, from the status of its own pods.
func BackupJob(cluster string, job *batchv1.Job, pods []*corev1.Pod, now time.Time) decide.BackupJob {
	j := decide.BackupJob{Name: job.Name, UID: string(job.UID), CreatedAt: job.CreationTimestamp.UTC()}
	if made := startedBy(cluster, job); made != nil {
		j.Generation, j.DiffersSince = made.Generation, made.DiffersSince
	}
	var said string
	j.Phase, j.EndedAt, said = jobPhase(job)
	own := byAge(pods)
	for _, pod := range own {
		verified := exited(pod, objects.VerifyContainer)
		if verified != nil && verified.ExitCode == objects.ExitDoubtful {
			j.Damaged = true
		}
	}
	for _, pod := range own {
		b := backupOf(pod, job, j)
		if !j.Damaged && b != nil && b.CanHaveBeen(now) { // several pods of the Job may report the same backup
			j.Backup = decide.NewerBackup(j.Backup, b)
		}
	}
	switch {
	case len(own) > 0 && j.Phase != decide.JobSucceeded:
		j.Message = cmp.Or(jobTrouble(own[len(own)-1]), printable.Line(said))
	case j.Phase == decide.JobRuns:
		j.Message = podless(job, own, now)
	default:
		j.Message = printable.Line(said)
	}
	return j
}

// startedBy returns the action with which a pass started the Job, or nil.
func startedBy(cluster string, job *batchv1.Job) *decide.StartBackup {
	var a decide.StartBackup
	var err error
	if since, is := job.Annotations[objects.AnnotationDiffersSince]; is {
		a.DiffersSince, err = time.Parse(time.RFC3339, since)
		a.DiffersSince = a.DiffersSince.UTC()
		if a.DiffersSince.Before(time.Unix(0, 0)) || a.DiffersSince.After(job.CreationTimestamp.Add(clockSkew)) {
			return nil
		}
	} else {
		a.Generation, err = strconv.ParseInt(job.Annotations[objects.AnnotationGeneration], 10, 64)
	}
	owner := metav1.GetControllerOf(job) // if a pass created the Job, the custom resource owns it
	byPass := owner != nil && owner.Kind == v1alpha1.Kind
	if err != nil || !byPass || job.Name != objects.BackupJobName(cluster, a) {
		return nil
	}
	return &a
}

// backupOf returns the backup that a pod has stored, or nil if it has not stored a backup or the backup was found to be
// damaged. The backup's start time is the creation time of its Job, by the API server's clock, unless the pod found an
// existing backup.
func backupOf(pod *corev1.Pod, job *batchv1.Job, j decide.BackupJob) *decide.Backup {
	took, verified := exited(pod, objects.BackupContainer), exited(pod, objects.VerifyContainer)
	if took == nil || took.ExitCode != 0 || verified != nil && verified.ExitCode == objects.ExitDoubtful {
		return nil
	}
	r, err := result.ParseResult(strings.TrimSpace(took.Message))
	if err != nil || r.Suspect || r.Slot.After(j.CreatedAt.Add(2*clockSkew)) {
		return nil
	}
	var cluster decide.ID
	if cluster.UnmarshalText([]byte(r.ClusterID)) != nil {
		return nil
	}
	b := &decide.Backup{
		Job: job.Name, Generation: j.Generation, Slot: r.Slot,
		StartedAt: j.CreatedAt, FinishedAt: r.FinishedAt.Truncate(time.Second),
		To:        printable.Line(job.Annotations[objects.AnnotationBackupTo]),
		ClusterID: cluster, Revision: r.Revision, Bytes: r.Bytes,
		Verified: verified != nil && verified.ExitCode == 0,
	}
	if r.StartedAt.Before(j.CreatedAt.Add(-clockSkew)) {
		b.StartedAt = r.StartedAt.Truncate(time.Second)
	}
	return b
}
