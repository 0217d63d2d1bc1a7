// Package podstate says what the status of a pod tells of the member of etcd in it.
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
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/visible"
)

// failingReasons are the reasons of a waiting container that do not go away by waiting a moment,
// beside those about its image.
var failingReasons = []string{
	"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// Phase says what etcd in a pod is doing, and why the pod is not ready. A container beside etcd's,
// as webhooks add them, never makes a member fail; but as long as the pod is not ready because of
// it, Services do not lead there, and nothing goes on as if they did.
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

// etcdStatus is the status of etcd's container; a zero one as long as there is none.
func etcdStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == objects.Container {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// othersTrouble says why a pod is not ready whose etcd is.
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

// containerPhase judges the state of etcd's container; an empty phase means that it says nothing.
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

// maxClockSkew is by how much the clocks of two API servers may differ.
const maxClockSkew = 5 * time.Second

// RunsOn reports whether etcd in a pod may run on the volume of a claim. A pod mounts the volumes that its claims have when
// it gets its node, and keeps them until it ends. Once etcd has started, a claim that has no volume yet, or that was
// created after the pod got its node, is another one of the same name. Two API servers may have written the two times, so
// that they are compared with a margin of maxClockSkew.
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

// Crashes is how often etcd in this pod has ended, if it has last ended by itself with an error.
func Crashes(pod *corev1.Pod) int {
	c, _ := lastCrash(pod)
	return int(c.RestartCount)
}

// lastCrash returns etcd's container and how it has last ended, if that was by itself with an
// error; a zero one and nil if not.
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

// noDataWords are etcd's when it is to start on its data, since its file does not name it, and
// finds none.
const noDataWords = "couldn't find local name"

// noPeersWords are etcd's when it is to join a cluster, and none of its members answers.
const noPeersWords = "cannot fetch cluster info from peer urls"

// NoData reports whether etcd in this pod has last ended for want of the data of a member that has
// started before.
func NoData(pod *corev1.Pod) bool { return endedSaying(pod, noDataWords) }

// NoPeers reports whether etcd in this pod has last ended for want of a member to join.
func NoPeers(pod *corev1.Pod) bool { return endedSaying(pod, noPeersWords) }

// endedSaying reports whether etcd in this pod has last ended with an error, and with those words.
func endedSaying(pod *corev1.Pod, words string) bool {
	_, ended := lastCrash(pod)
	return ended != nil && strings.Contains(lastSeriousLine(ended.Message), words)
}

// The exit codes of a process that was ended by SIGKILL or SIGTERM, from outside.
const killed, terminated = 128 + int32(syscall.SIGKILL), 128 + int32(syscall.SIGTERM)

// crashed reports whether a container ended by itself with an error. A container that ran has no
// other reason for that than Error: the others are about memory, about a node that was lost, and
// about containers that could not be started.
func crashed(t *corev1.ContainerStateTerminated) bool {
	fromOutside := t.ExitCode == killed || t.ExitCode == terminated
	return t.Reason == "Error" && t.ExitCode != 0 && !fromOutside
}

// StoppedByCheck reports whether etcd in this pod is down because, before it served anybody, it
// found that a peer's data differ from its own.
func StoppedByCheck(pod *corev1.Pod) bool {
	if isReady(pod) {
		return false
	}
	_, ended := lastCrash(pod)
	return ended != nil && strings.HasSuffix(lastSeriousLine(ended.Message), "found data inconsistency with peers")
}

// lastWords is what the container's last run ended with.
func lastWords(c corev1.ContainerStatus) string {
	if c.LastTerminationState.Terminated == nil {
		return ""
	}
	return terminationMessage(c.LastTerminationState.Terminated)
}

// terminationMessage says why a container ended: etcd's last serious log line if the kubelet kept
// it, else the exit code.
func terminationMessage(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "OOMKilled" {
		return "out of memory"
	}
	if line := lastSeriousLine(t.Message); line != "" {
		return OneLine(line)
	}
	return fmt.Sprintf("exit code %d", t.ExitCode)
}

// lastSeriousLine finds the last line of etcd's log, one JSON object a line, that tells of an
// error.
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

// UnreadySince is since when a pod has not been ready; zero if it is. One that no
// node has taken yet has never been.
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

// StartedAt is since when etcd's container has run in a pod that is starting.
func StartedAt(pod *corev1.Pod, phase decide.PodPhase) time.Time {
	if c := etcdStatus(pod); phase == decide.PodStarting && c.State.Running != nil {
		return c.State.Running.StartedAt.UTC()
	}
	return time.Time{}
}

// GoneBy is when a pod that is being deleted was to be gone, its grace period over.
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

// longestReason is how much is told of why a pod is as it is, in bytes.
const longestReason = 300

// OneLine is a text that others wrote, on one line, not too long, and with what a terminal would
// obey, or not show, written out.
func OneLine(text string) string {
	text = visible.Text(strings.Join(strings.Fields(text), " "))
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "…"
}
