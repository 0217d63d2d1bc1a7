package podstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// RestoreJob returns the result of a restore Job from the status of the Job's own pods.
func RestoreJob(job *batchv1.Job, pods []*corev1.Pod, now time.Time) decide.RestoreJob {
	j := decide.RestoreJob{
		VolumeJob: volumeJob(job, pods, now, job.Annotations[objects.AnnotationRestoreDigest]),
		From:      printable.Line(job.Annotations[objects.AnnotationRestoreFrom]),
	}
	ended := succeeded(pods)
	switch {
	case j.Phase == decide.JobSucceeded && len(ended) == 0 && slices.ContainsFunc(pods, Runs):
		j.Phase = decide.JobRuns // the pods were listed before the Job was read
	case j.Phase == decide.JobSucceeded:
		restored := restoredBy(byAge(ended))
		j.Restored, j.Data = restored.backup, restored.data
		if copies(job) { // this time does not identify a backup in a store
			j.Restored = strings.Replace(j.Restored, "backup", "copy", 1)
		}
	}
	return j
}

// succeeded returns the pods that have succeeded. Only their results count, because an evicted pod, for example, may
// have restored data that a later pod did not use.
func succeeded(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods),
		func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodSucceeded })
}

// Runs reports whether a pod has not ended. A pod that has not started yet counts as running.
func Runs(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// copies reports whether a restore Job copies the data of an etcd cluster.
func copies(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Spec.Template.Spec.InitContainers,
		func(c corev1.Container) bool { return c.Name == objects.CopyContainer })
}

// restored describes the data that a pod reports as restored.
type restored struct {
	// backup describes the backup. suspect is set if etcd had reported that the backup's data might be wrong.
	backup  string
	suspect bool
	data    decide.RestoredData
}

// restoredBy returns the backup that the newest successful pod has restored, with the resulting data, or zero.
func restoredBy(pods []*corev1.Pod) restored {
	for r := range results(pods, objects.RestoreContainer, result.ParseRestored) {
		var data decide.RestoredData
		var source decide.ID
		if source.UnmarshalText([]byte(r.SourceClusterID)) != nil ||
			data.ClusterID.UnmarshalText([]byte(r.ClusterID)) != nil ||
			data.MemberID.UnmarshalText([]byte(r.MemberID)) != nil {
			continue
		}
		data.Revision = r.NewRevision
		what := "the backup"
		if r.Suspect {
			what = "the suspect backup" // the spec contains its name anyway
		}
		backup := fmt.Sprintf("%s %s of cluster %s at revision %d", what, r.Slot.Format(time.RFC3339),
			source, r.Revision)
		return restored{backup, r.Suspect, data}
	}
	return restored{}
}
