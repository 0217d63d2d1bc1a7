package podstate

import (
	"cmp"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// RecoveryJob returns the result of a recovery Job from the status of the Job's own pods. If the Job's annotations are
// incomplete, the result does not contain a cluster.
func RecoveryJob(job *batchv1.Job, pods []*corev1.Pod, now time.Time) decide.RecoveryJob {
	j := decide.RecoveryJob{
		VolumeJob: volumeJob(job, pods, now, job.Annotations[objects.AnnotationRecoveryDigest]),
		From:      printable.Line(job.Annotations[objects.AnnotationRestoreFrom]),
	}
	ordinal, err := strconv.Atoi(job.Annotations[objects.AnnotationOrdinal])
	if err == nil {
		err = j.ClusterID.UnmarshalText([]byte(job.Annotations[objects.AnnotationLostCluster]))
	}
	if err != nil || ordinal < 0 || ordinal > objects.MaxOrdinal {
		j.ClusterID = 0
		return j
	}
	j.Ordinal = ordinal
	switch {
	case j.Phase != decide.JobSucceeded:
	case j.From == "":
		j.Into, j.Suspect = recoveredInto(byAge(pods), j.ClusterID)
	default:
		restored := restoredBy(byAge(pods))
		j.Restored, j.Into, j.Suspect = restored.backup, restored.data.ClusterID, restored.suspect
	}
	return j
}

// recoveredInto returns the cluster that the newest successful pod has created from the lost cluster, and whether its
// data is suspect. It returns zero if no pod has reported a result.
func recoveredInto(pods []*corev1.Pod, lost decide.ID) (into decide.ID, suspect bool) {
	for r := range results(pods, objects.RecoverContainer, result.ParseRecovered) {
		var of decide.ID
		if of.UnmarshalText([]byte(r.LostClusterID)) != nil || of != lost ||
			into.UnmarshalText([]byte(r.ClusterID)) != nil {
			continue
		}
		return into, r.Suspect
	}
	return 0, false
}

// volumeJob returns the state of a Job that works on a volume.
func volumeJob(job *batchv1.Job, pods []*corev1.Pod, now time.Time, digest string) decide.VolumeJob {
	j := decide.VolumeJob{
		UID: string(job.UID), VolumeUID: job.Annotations[objects.AnnotationVolume], Digest: digest,
		Terminating: job.DeletionTimestamp != nil,
	}
	var said string
	if j.Phase, _, said = jobPhase(job); j.Phase == decide.JobSucceeded {
		return j
	}
	own := byAge(pods)
	if len(own) > 0 {
		j.Message = jobTrouble(own[len(own)-1])
	}
	if j.Phase == decide.JobRuns {
		j.Message = cmp.Or(j.Message, podless(job, own, now))
	}
	j.Message = cmp.Or(j.Message, printable.Line(said))
	return j
}
