package clusters

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// runningPod returns the pod of a-1, which was scheduled at noon.
func runningPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1", UID: "p1", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

// claimMade returns the claim of a-1 with the given UID, created the given time after the pod was scheduled.
func claimMade(uid string, after time.Duration, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	claim := claimed("")
	claim.UID, claim.CreationTimestamp, claim.Status.Phase = types.UID(uid), metav1.NewTime(noon.Add(after)), phase
	return claim
}

func TestClaimCreatedUnderRunningPodIsNotItsVolume(t *testing.T) {
	bound := corev1.ClaimBound
	for _, test := range []struct {
		name        string
		change      func(*corev1.Pod)
		listed, now *corev1.PersistentVolumeClaim
		want        string
	}{
		{name: "claim created before scheduling", listed: claimMade("v1", -time.Second, bound), want: "v1"},
		{name: "claim created in the same second", listed: claimMade("v1", 0, bound), want: "v1"},
		{name: "claim created later, within clock skew", listed: claimMade("v1", 5*time.Second, bound), want: "v1"},
		{name: "recorded as the member's claim", listed: claimMade("recorded", time.Minute, bound), want: "recorded"},
		{name: "claim created long before scheduling", listed: claimMade("v1", -time.Minute, bound), want: "v1"},
		{name: "claim created while the pod runs", listed: claimMade("v2", time.Minute, bound), now: claimMade("v2", time.Minute, bound)},
		{name: "claim is not bound", listed: claimMade("v2", -time.Second, corev1.ClaimPending), now: claimMade("v2", -time.Second, corev1.ClaimPending)},
		{name: "claim was bound after listing", listed: claimMade("v1", -time.Second, corev1.ClaimPending), now: claimMade("v1", -time.Second, bound), want: "v1"},
		{name: "claim was deleted after listing", listed: claimMade("v2", time.Minute, bound)},
		{name: "etcd crashes", listed: claimMade("v2", time.Minute, bound), now: claimMade("v2", time.Minute, bound), change: func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}},
		{name: "pod is being deleted", listed: claimMade("v2", time.Minute, bound), now: claimMade("v2", time.Minute, bound), change: func(pod *corev1.Pod) {
			pod.DeletionTimestamp = &metav1.Time{Time: noon}
		}},
		{name: "etcd has not started", listed: claimMade("v1", time.Minute, bound), want: "v1", change: func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		}},
		{name: "time of scheduling is unknown", listed: claimMade("v1", time.Minute, bound), want: "v1", change: func(pod *corev1.Pod) {
			pod.Status.Conditions = pod.Status.Conditions[1:]
		}},
		{name: "no pod", listed: claimMade("v1", time.Minute, bound), want: "v1", change: func(pod *corev1.Pod) { pod.Name = "a-2" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := runningPod()
			if test.change != nil {
				test.change(pod)
			}
			server := &storageServer{claim: test.now}
			c := &cluster{live: &Live{kube: clientOf(t, server)}, own: &inventory.Cluster{Pods: []*corev1.Pod{pod}, Claims: []*corev1.PersistentVolumeClaim{test.listed}}}
			c.target.Cluster.Name, c.target.Cluster.Spec.Lifecycle = "a", v1alpha1.LifecycleRunning
			c.state = decide.State{Name: "a", Replicas: c.replicas()}
			c.state.Record = c.state.Record.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed, ID: 0xa1, VolumeUID: "recorded"})
			if err := c.findReplaced(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.state.Replica(1).VolumeUID; got != test.want {
				t.Errorf("got volume %q, want %q", got, test.want)
			}
		})
	}
}

// TestReplacedClaimBlocksStop checks that pods are not stopped if a pod's claim has been replaced, because its volume
// would be deleted with the pod.
func TestReplacedClaimBlocksStop(t *testing.T) {
	const want = "not yet: PersistentVolumeClaim data-a-1 is not the pod's claim; the pod's volume would be deleted with the pod"
	for _, seen := range []string{"", "v1"} {
		c := &cluster{live: &Live{kube: clientOf(t, &storageServer{claim: claimed("v2")})}}
		c.target.Cluster.Name, c.target.Cluster.Spec.Lifecycle = "a", v1alpha1.LifecycleStopped
		c.state.Replicas = []decide.Replica{{Ordinal: 1, PodUID: "p1", Pod: decide.PodReady, VolumeUID: seen}}
		c.state.Record.Members = []decide.RecordedMember{{Ordinal: 1, Mode: decide.Sealed, ID: 0xa1, VolumeUID: "v1"}}
		if got, err := c.stopsOnGoingVolume(t.Context()); err != nil || got != want {
			t.Errorf("observed volume %q: %q, %v", seen, got, err)
		}
	}
}
