package podstate

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// podSoon is the time within which Kubernetes creates a pod for a Job unless something prevents it.
const podSoon = 30 * time.Second

// jobPhase returns the phase of a Job according to Kubernetes, the time at which it ended, and the reason if it failed.
func jobPhase(job *batchv1.Job) (phase decide.JobPhase, endedAt time.Time, why string) {
	phase = decide.JobRuns
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			phase, endedAt = decide.JobSucceeded, c.LastTransitionTime.UTC()
		case c.Type == batchv1.JobFailed:
			phase, endedAt, why = decide.JobFailed, c.LastTransitionTime.UTC(), cmp.Or(c.Message, c.Reason)
		}
	}
	return phase, endedAt, why
}

// podless returns a message if a running Job has been without a pod for longer than Kubernetes needs to create a pod,
// for example because a quota rejects the pod. Otherwise, it returns "".
func podless(job *batchv1.Job, pods []*corev1.Pod, now time.Time) string {
	if len(pods) > 0 || now.Sub(job.CreationTimestamp.Time) < podSoon {
		return ""
	}
	return fmt.Sprintf("it has no pod. See kubectl describe job %s", job.Name)
}

// byAge returns the pods, oldest first.
func byAge(pods []*corev1.Pod) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// results yields the valid results of a container from the status of the pods in which it succeeded, starting with the
// last pod.
func results[R any](pods []*corev1.Pod, container string, parse func(string) (R, error)) iter.Seq[R] {
	return func(yield func(R) bool) {
		for _, pod := range slices.Backward(pods) {
			ended := exited(pod, container)
			if ended == nil || ended.ExitCode != 0 {
				continue
			}
			if r, err := parse(strings.TrimSpace(ended.Message)); err == nil && !yield(r) {
				return
			}
		}
	}
}

// exited returns how a container of a pod ended, or nil if it has not ended.
func exited(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// jobTrouble returns what a pod of a Job is waiting for, or the reason why it failed, or "".
func jobTrouble(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			if _, err := result.ParseResult(strings.TrimSpace(t.Message)); err == nil {
				return suspect
			}
			why := cmp.Or(lastLine(t.Message), t.Reason, fmt.Sprintf("exit code %d", t.ExitCode))
			return printable.Line(fmt.Sprintf("%s: %s", c.Name, strings.TrimPrefix(why, c.Name+": ")))
		}
		switch w := c.State.Waiting; {
		case w == nil || w.Reason == "PodInitializing":
		case w.Reason == "ContainerCreating": // only events show the reason
			return fmt.Sprintf("pod %s is starting. If it does not start, see kubectl describe pod %[1]s", pod.Name)
		default:
			return printable.Line(strings.TrimSuffix(w.Reason+": "+w.Message, ": "))
		}
	}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return printable.Line(cmp.Or(scheduled.Message, scheduled.Reason))
	}
	return printable.Line(cmp.Or(pod.Status.Message, pod.Status.Reason))
}

// lastLine returns the last line of a log, which contains the reason why a command failed.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return printable.Line(strings.TrimPrefix(lines[len(lines)-1], "quorate: "))
}
