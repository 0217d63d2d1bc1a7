package podstate

import (
	"cmp"
	"math"
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

// DrillJob returns the result of a drill Job from the status of the Job's own pods. Both results are nil while the Job
// is running, and if its result is missing or from the future.
func DrillJob(job *batchv1.Job, pods []*corev1.Pod, now time.Time) (*decide.Drill, *decide.DrillFailure) {
	own := byAge(pods)
	phase, endedAt, said := jobPhase(job)
	switch phase {
	case decide.JobSucceeded:
		for _, pod := range slices.Backward(own) {
			if d := drillOf(pod, job); d != nil && d.CanHaveBeen(now) {
				return d, nil
			}
		}
	case decide.JobFailed:
		why := printable.Line(said)
		if len(own) > 0 {
			why = cmp.Or(jobTrouble(own[len(own)-1]), why)
		}
		return nil, &decide.DrillFailure{Job: job.Name, At: endedAt, Message: why}
	case decide.JobRuns:
	}
	return nil, nil
}

// drillOf returns the drill result of a pod, or nil if it has no plausible result.
func drillOf(pod *corev1.Pod, job *batchv1.Job) *decide.Drill {
	ended := exited(pod, objects.DrillContainer)
	if ended == nil || ended.ExitCode != 0 {
		return nil
	}
	r, err := result.ParseDrilled(strings.TrimSpace(ended.Message))
	created := job.CreationTimestamp.UTC()
	if err != nil || r.Slot.After(created.Add(2*clockSkew)) || r.FinishedAt.After(ended.FinishedAt.Add(clockSkew)) {
		return nil
	}
	d := &decide.Drill{
		Job: job.Name, Slot: r.Slot, EtcdVersion: r.EtcdVersion,
		FinishedAt: r.FinishedAt.Truncate(time.Second), Seconds: int64(math.Ceil(r.Seconds())), Bytes: r.Bytes,
		Uncompared: r.Uncompared,
	}
	if d.ClusterID.UnmarshalText([]byte(r.ClusterID)) != nil {
		return nil
	}
	return d
}
