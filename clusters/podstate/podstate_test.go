package podstate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

const sealedLog = `{"level":"info","ts":"2026-11-01T10:00:00Z","msg":"Running: "}
{"level":"fatal","ts":"2026-11-01T10:00:01Z","msg":"discovery failed","error":"couldn't find local name \"a-1\" in the initial cluster configuration"}
`

func TestPhase(t *testing.T) {
	waiting := func(reason, message, lastLog string) corev1.PodStatus {
		status := corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
		if lastLog != "" {
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: lastLog}
		}
		return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}}
	}
	running := func(restarts int32, last *corev1.ContainerStateTerminated) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, RestartCount: restarts,
			LastTerminationState: corev1.ContainerState{Terminated: last},
		}}}
	}
	beside := func(etcd corev1.ContainerStatus, other corev1.ContainerState) corev1.PodStatus {
		proxy := corev1.ContainerStatus{Name: "proxy", State: other}
		if other.Waiting != nil {
			proxy.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
		}
		return corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{proxy, etcd},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}},
		}
	}
	imageless := func(lastLog, message string) corev1.PodStatus {
		status := waiting("ImagePullBackOff", message, lastLog)
		status.ContainerStatuses[0].Image = "example.com/etcd:v3.6.16"
		return status
	}
	pulling := func(prepared corev1.ConditionStatus) corev1.PodStatus {
		status := waiting("ContainerCreating", "", "")
		status.ContainerStatuses[0].Name, status.ContainerStatuses[0].Image = "etcd", "example.com/etcd:v3.6.16"
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: prepared, LastTransitionTime: metav1.Unix(90, 0)}}
		return status
	}
	tests := []struct {
		name    string
		status  corev1.PodStatus
		gone    bool
		phase   decide.PodPhase
		message string
	}{
		{name: "being deleted", gone: true, phase: decide.PodTerminating},
		{name: "ready", phase: decide.PodReady, status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}},
		{name: "without a node", phase: decide.PodPending, message: "0/3 nodes are available", status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}},
		}},
		{name: "being created", status: waiting("ContainerCreating", "", ""), phase: decide.PodPending},
		{name: "being given its volumes", status: pulling(corev1.ConditionFalse), phase: decide.PodPending},
		{
			name: "waiting for its image", status: pulling(corev1.ConditionTrue), phase: decide.PodPending,
			message: "waiting for its image example.com/etcd:v3.6.16 since 1970-01-01T00:01:30Z",
		},
		{
			name: "no such image, after it ran", status: imageless(sealedLog, "Back-off pulling image \"example.com/etcd:v3.6.16\": not found"), phase: decide.PodFailing,
			message: `ImagePullBackOff: Back-off pulling image "example.com/etcd:v3.6.16": not found`,
		},
		{
			name: "no such image, which is not named", status: imageless("", "not\nfound\x1b[2J"), phase: decide.PodFailing,
			message: `ImagePullBackOff: example.com/etcd:v3.6.16: not found\x1b[2J`,
		},
		{name: "no such image, without a word", status: imageless("", ""), phase: decide.PodFailing, message: "ImagePullBackOff: example.com/etcd:v3.6.16"},
		{name: "no such image", status: waiting("ImagePullBackOff", "no such tag", ""), phase: decide.PodFailing, message: "ImagePullBackOff: no such tag"},
		{
			name: "sealed without data", status: waiting("CrashLoopBackOff", "back-off 10s", sealedLog), phase: decide.PodFailing,
			message: `CrashLoopBackOff: discovery failed: couldn't find local name "a-1" in the initial cluster configuration`,
		},
		{
			name: "nobody to join", status: waiting("CrashLoopBackOff", "back-off 10s", strings.ReplaceAll(sealedLog, `couldn't find local name \"a-1\" in the initial cluster configuration`, noPeersWords)),
			phase: decide.PodFailing, message: "CrashLoopBackOff: discovery failed: " + noPeersWords,
		},
		{name: "started", status: running(0, nil), phase: decide.PodStarting},
		{
			name: "restarted", status: running(2, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}),
			phase: decide.PodStarting, message: "restarted 2 times, last: out of memory",
		},
		{
			name: "ended", phase: decide.PodFailing, message: "exit code 3",
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "etcd", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "no JSON"}},
			}}},
		},
		{
			name: "with another container that crashes", phase: decide.PodStarting, message: "its container proxy is not ready: CrashLoopBackOff: exit code 1",
			status: beside(corev1.ContainerStatus{Name: "etcd", Ready: true}, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}),
		},
		{
			name: "starting, with another container that crashes", phase: decide.PodStarting,
			status: beside(corev1.ContainerStatus{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}),
		},
		{name: "with another container that starts", phase: decide.PodStarting, message: "its container proxy is not ready",
			status: beside(corev1.ContainerStatus{Name: "etcd", Ready: true}, corev1.ContainerState{})},
		{name: "behind a gate", phase: decide.PodStarting, message: "corresponding condition of pod readiness gate does not exist", status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: "corresponding condition of pod readiness gate does not exist"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", Ready: true}},
		}},
		{name: "on a node that is lost, after its etcd was ready", phase: decide.PodStarting, status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}},
		{name: "evicted", phase: decide.PodFailing, message: "the node was low on memory", status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: test.status}
			if test.gone {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			phase, message := Phase(pod)
			if phase != test.phase || message != test.message {
				t.Errorf("got %s %q, want %s %q", phase, message, test.phase, test.message)
			}
		})
	}
}

// TestCrashes checks that a pod that is ended by Kubernetes or the kubelet does not count as an etcd crash (hard case
// H45).
func TestCrashes(t *testing.T) {
	ended := func(reason string, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	tests := []struct {
		name        string
		state, last corev1.ContainerState
		container   string
		want        int
	}{
		{name: "in a crash loop", state: waiting, last: ended("Error", 2), want: 5},
		{name: "ended just now", state: ended("Error", 1), last: ended("OOMKilled", 137), want: 5},
		{name: "runs after a crash", state: running, last: ended("Error", 2), want: 5},
		{name: "never ended", state: running},
		{name: "out of memory", state: waiting, last: ended("OOMKilled", 137)},
		{name: "killed, after a crash before that", state: ended("Error", 137), last: ended("Error", 2)},
		{name: "stopped", state: running, last: ended("Error", 143)},
		{name: "ended well", state: running, last: ended("Completed", 0)},
		{name: "could not be started", state: waiting, last: ended("StartError", 128)},
		{name: "could not be run", state: waiting, last: ended("ContainerCannotRun", 127)},
		{name: "its node was lost", state: waiting, last: ended("ContainerStatusUnknown", 137)},
		{name: "no image", state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		{name: "another container", state: waiting, last: ended("Error", 2), container: "sidecar"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			status := corev1.ContainerStatus{Name: "etcd", State: test.state, LastTerminationState: test.last, RestartCount: 5}
			if test.container != "" {
				status.Name = test.container
			}
			if got := Crashes(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// TestStoppedByCheck checks the messages of etcd 3.5.35, 3.6.16 and 3.7.3, in shortened form.
func TestStoppedByCheck(t *testing.T) {
	const closing = `{"level":"info","msg":"closed etcd server"}` + "\n"
	const found = "nd from remote peer\"}\n" + `{"level":"error","msg":"checkInitialHashKV failed","error":"d47c found data inconsistency with peers","stacktrace":"x"}` + "\n" + closing +
		`{"level":"fatal","msg":"discovery failed","error":"d47c found data inconsistency with peers","stacktrace":"x"}`
	const unreadable = `{"level":"fatal","msg":"discovery failed","error":"d47c failed to fetch hash (mvcc: closed)","stacktrace":"x"}`
	ended := func(words string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: words}
	}
	for what, c := range map[string]struct {
		status corev1.ContainerStatus
		ready  corev1.ConditionStatus
		want   bool
	}{
		"has just ended":        {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(found)}}, corev1.ConditionFalse, true},
		"starts again":          {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: ended(found)}}, corev1.ConditionFalse, true},
		"has started again":     {corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: ended(found)}}, corev1.ConditionTrue, false},
		"ended otherwise":       {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(unreadable)}}, corev1.ConditionFalse, false},
		"ended otherwise since": {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(unreadable)}, LastTerminationState: corev1.ContainerState{Terminated: ended(found)}}, corev1.ConditionFalse, false},
		"never ended":           {corev1.ContainerStatus{}, corev1.ConditionFalse, false},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: c.ready}}}}
		c.status.Name = "etcd"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.status}
		if got := StoppedByCheck(pod); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestTerminationMessageIsTruncatedAndEscaped checks that the last message of etcd's container, which is untrusted, is
// truncated to a readable length and that its control characters are escaped.
func TestTerminationMessageIsTruncatedAndEscaped(t *testing.T) {
	log := `{"level":"fatal","msg":"\u001b[2J\u202e` + strings.Repeat("w", 3000) + `"}`
	said := terminationMessage(&corev1.ContainerStateTerminated{ExitCode: 1, Message: log})
	if len(said) > 400 || !printable.Is(said) || !strings.HasPrefix(said, `\x1b[2J\u202eww`) {
		t.Errorf("%d bytes: %q", len(said), said)
	}
}
