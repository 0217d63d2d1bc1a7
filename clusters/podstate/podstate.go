// Package podstate derives the state of an etcd member from the status of its pod.
package podstate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// failingReasons lists waiting reasons of containers that are not resolved quickly, except image problems.
var failingReasons = []string{
	"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// Phase returns the phase of the etcd container and the reason why the pod is not ready. An injected sidecar never
// makes a member fail. However, the pod does not count as ready until the sidecar is ready too, because Services do not
// route to the pod before.
func Phase(pod *corev1.Pod) (decide.PodPhase, string) {
	if pod.DeletionTimestamp != nil {
		return decide.PodTerminating, ""
	}
	if isReady(pod) {
		return decide.PodReady, ""
	}
	etcd := etcdStatus(pod)
	if etcd.Ready {
		return decide.PodStarting, othersTrouble(pod)
	}
	if phase, message := containerPhase(etcd); phase != "" {
		return phase, message
	}
	if pod.Status.Phase == corev1.PodFailed {
		return decide.PodFailing, cmp.Or(pod.Status.Message, pod.Status.Reason, "the pod failed")
	}
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status != corev1.ConditionTrue {
		return decide.PodPending, cmp.Or(scheduled.Message, scheduled.Reason)
	}
	return decide.PodPending, cmp.Or(pod.Status.Message, awaitedImage(pod))
}

func isReady(pod *corev1.Pod) bool {
	ready := condition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

// etcdStatus returns the status of the etcd container, or zero if the container does not exist yet.
func etcdStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == objects.Container {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// othersTrouble returns the reason why a pod is not ready although its etcd is ready.
func othersTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != objects.Container && !c.Ready {
			_, message := containerPhase(c)
			return strings.TrimSuffix(fmt.Sprintf("its container %s is not ready: %s", c.Name, message), ": ")
		}
	}
	if ready := condition(pod, corev1.PodReady); ready != nil {
		return cmp.Or(ready.Message, ready.Reason)
	}
	return ""
}

// containerPhase returns the phase that follows from the state of a container, or "" if the state is inconclusive.
func containerPhase(c corev1.ContainerStatus) (decide.PodPhase, string) {
	switch {
	case imageTrouble(c) != "":
		return decide.PodFailing, imageTrouble(c)
	case c.State.Waiting != nil && slices.Contains(failingReasons, c.State.Waiting.Reason):
		words := lastWords(c)
		if words == "" {
			words = c.State.Waiting.Message
		}
		return decide.PodFailing, strings.TrimSuffix(c.State.Waiting.Reason+": "+words, ": ")
	case c.State.Terminated != nil:
		return decide.PodFailing, terminationMessage(c.State.Terminated)
	case c.State.Running != nil && c.RestartCount > 0:
		return decide.PodStarting, fmt.Sprintf("restarted %d times, last: %s", c.RestartCount, lastWords(c))
	case c.State.Running != nil:
		return decide.PodStarting, ""
	}
	return "", ""
}

// maxClockSkew is the maximum difference between the clocks of two API servers.
const maxClockSkew = 5 * time.Second

// RunsOn reports whether etcd in a pod may run on the volume of a claim. A pod mounts the volumes that its claims have
// when it is scheduled, and keeps them until it ends. After etcd has started, a claim that has no volume, or was
// created after the pod was scheduled, is therefore a different claim with the same name. Two API servers may have
// written these times, so they are compared with a tolerance of maxClockSkew.
func RunsOn(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	etcd := etcdStatus(pod)
	started := etcd.State.Running != nil || etcd.State.Terminated != nil || etcd.LastTerminationState.Terminated != nil
	scheduled := condition(pod, corev1.PodScheduled)
	if !started || scheduled == nil || scheduled.Status != corev1.ConditionTrue {
		return true
	}
	younger := claim.CreationTimestamp.After(scheduled.LastTransitionTime.Add(maxClockSkew))
	return claim.Status.Phase != corev1.ClaimPending && !younger
}

// Crashes returns how often the etcd container in this pod has been restarted, or zero if etcd's last exit was not an
// error of its own.
func Crashes(pod *corev1.Pod) int {
	c, _ := lastCrash(pod)
	return int(c.RestartCount)
}

// lastCrash returns the status of the etcd container and its last termination if etcd exited with an error on its own.
// Otherwise, it returns zero and nil.
func lastCrash(pod *corev1.Pod) (corev1.ContainerStatus, *corev1.ContainerStateTerminated) {
	c := etcdStatus(pod)
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	if ended != nil && crashed(ended) {
		return c, ended
	}
	return corev1.ContainerStatus{}, nil
}

// noDataWords is the message that etcd logs if it has no data and may start only with its data, because its
// configuration file does not name it.
const noDataWords = "couldn't find local name"

// noPeersWords is the message that etcd logs if it must join a cluster whose members do not respond.
const noPeersWords = "cannot fetch cluster info from peer urls"

// NoData reports whether etcd last exited because the data of a previously started member is missing.
func NoData(pod *corev1.Pod) bool { return endedSaying(pod, noDataWords) }

// NoPeers reports whether etcd last exited because it could not reach any member of the cluster that it must join.
func NoPeers(pod *corev1.Pod) bool { return endedSaying(pod, noPeersWords) }

// endedSaying reports whether etcd in this pod last exited with an error that contains words.
func endedSaying(pod *corev1.Pod, words string) bool {
	_, ended := lastCrash(pod)
	return ended != nil && strings.Contains(lastSeriousLine(ended.Message), words)
}

// These are the exit codes of a process that was ended from outside by SIGKILL or SIGTERM.
const killed, terminated = 128 + int32(syscall.SIGKILL), 128 + int32(syscall.SIGTERM)

// crashed reports whether a container exited with an error on its own. In that case, the reason is always Error. Other
// reasons refer to memory, a lost node, or a container that could not be started.
func crashed(t *corev1.ContainerStateTerminated) bool {
	fromOutside := t.ExitCode == killed || t.ExitCode == terminated
	return t.Reason == "Error" && t.ExitCode != 0 && !fromOutside
}

// StoppedByCheck reports whether etcd in this pod is down because it found, before it served clients, that its data
// differs from a peer's.
func StoppedByCheck(pod *corev1.Pod) bool {
	if isReady(pod) {
		return false
	}
	_, ended := lastCrash(pod)
	return ended != nil && strings.HasSuffix(lastSeriousLine(ended.Message), "found data inconsistency with peers")
}

// lastWords returns the message of the container's last exit.
func lastWords(c corev1.ContainerStatus) string {
	if c.LastTerminationState.Terminated == nil {
		return ""
	}
	return terminationMessage(c.LastTerminationState.Terminated)
}

// terminationMessage returns the reason why a container ended: etcd's last serious log line if the kubelet has kept it,
// or else the exit code.
func terminationMessage(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "OOMKilled" {
		return "out of memory"
	}
	if line := lastSeriousLine(t.Message); line != "" {
		return OneLine(line)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}

// lastSeriousLine returns the last line that reports an error in etcd's log, which contains one JSON object per line.
func lastSeriousLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		entry := struct{ Level, Msg, Error string }{}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		if slices.Contains([]string{"fatal", "panic", "error"}, entry.Level) {
			return strings.TrimSuffix(entry.Msg+": "+entry.Error, ": ")
		}
	}
	return ""
}

// UnreadySince returns the time since which a pod has not been ready, or zero if it is ready. A pod that has not been
// scheduled yet has never been ready.
func UnreadySince(pod *corev1.Pod) time.Time {
	ready := condition(pod, corev1.PodReady)
	switch {
	case ready == nil:
		return pod.CreationTimestamp.UTC()
	case ready.Status == corev1.ConditionTrue:
		return time.Time{}
	}
	return ready.LastTransitionTime.UTC()
}

// StartedAt returns the time at which etcd's container started in a pod that is starting, or zero.
func StartedAt(pod *corev1.Pod, phase decide.PodPhase) time.Time {
	if c := etcdStatus(pod); phase == decide.PodStarting && c.State.Running != nil {
		return c.State.Running.StartedAt.UTC()
	}
	return time.Time{}
}

// GoneBy returns the time at which the grace period of a pod that is being deleted ends, or zero.
func GoneBy(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	return pod.DeletionTimestamp.UTC()
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// longestReason is the maximum length of a pod's reason, in bytes.
const longestReason = 300

// OneLine returns untrusted text on one line, truncated, and with control and invisible characters escaped.
func OneLine(text string) string {
	text = printable.Text(strings.Join(strings.Fields(text), " "))
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "…"
}
