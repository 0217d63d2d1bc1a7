package clusters

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/reconcile/decide"
)

// podServer is an API server that contains pods and the claim of the pod to restart.
type podServer struct {
	pods     []*corev1.Pod
	claim    *corev1.PersistentVolumeClaim
	restarts int
	deleted  bool
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.deleted = s.deleted || r.Method == http.MethodDelete
	pod := s.pods[s.restarts].DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	var body any = pod
	switch {
	case strings.Contains(r.URL.Path, "/persistentvolumeclaims/"):
		body = s.claim
	case strings.HasSuffix(r.URL.Path, "/pods"):
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, pod := range s.pods {
			list.Items = append(list.Items, *pod)
		}
		body = list
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// TestRestartWaitsForOtherPods checks that the other two pods are not restarted while a pod is being evicted. The
// evicted pod still responds for seconds, until its etcd has transferred leadership.
func TestRestartWaitsForOtherPods(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(*corev1.Pod)
		deletes bool
	}{
		"other pod is ready":         {func(*corev1.Pod) {}, true},
		"other pod is being evicted": {func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
		"other pod is not ready":     {func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"other pod is gone":          {func(pod *corev1.Pod) { pod.Name = "b-0" }, false},
	} {
		l := newLife(t)
		c := l.seen(l.old)
		server := &podServer{restarts: 1, claim: l.claims[1]}
		for _, pod := range l.pods {
			server.pods = append(server.pods, pod.DeepCopy())
		}
		test.happens(server.pods[0])
		c.live.kube = clientOf(t, server)
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
		if waits := strings.Contains(outcome.Detail, "pod a-0"); err != nil || server.deleted != test.deletes || waits == test.deletes {
			t.Errorf("%s: %+v, %v, deleted %t", name, outcome, err, server.deleted)
		}
	}
}

// TestRestartWaitsForDowngrade checks that a serving member is not restarted with an older version once the downgrade
// has been canceled, because that version would not start with the data.
func TestRestartWaitsForDowngrade(t *testing.T) {
	for _, enabled := range []string{"", "3.5.0"} {
		l := newLife(t)
		c := l.seen(l.old)
		c.state.Membership.Downgrade = enabled
		server := &podServer{pods: l.pods, restarts: 1, claim: l.claims[1]}
		c.live.kube = clientOf(t, server)
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
		if err != nil || server.deleted != (enabled == "") {
			t.Errorf("with downgrade target %q: %+v, %v, deleted %t", enabled, outcome, err, server.deleted)
		}
	}
}

// TestRestartWaitsForOtherVoters checks that a serving member is not restarted once another member has been removed
// manually. With two members left, the other one alone would not be a majority.
func TestRestartWaitsForOtherVoters(t *testing.T) {
	for _, removed := range []bool{false, true} {
		l := newLife(t)
		c := l.seen(l.old)
		if removed {
			a := decide.RemoveMember{ID: 3, Name: "a-2"}
			if outcome, err := c.changeEtcd(t.Context(), a, removal(a)); err != nil || !outcome.Changed {
				t.Fatalf("%+v, %v", outcome, err)
			}
		}
		server := &podServer{pods: l.pods, restarts: 1, claim: l.claims[1]}
		c.live.kube = clientOf(t, server)
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
		if waits := strings.Contains(outcome.Detail, "the other voters have changed"); err != nil || server.deleted == removed || waits != removed {
			t.Errorf("other member removed %t: %+v, %v, deleted %t", removed, outcome, err, server.deleted)
		}
	}
}

// TestCorruptAlarmBlocksRestart checks that a serving member is not restarted once etcd has found that members hold
// different data. On restart, the member would compare its data with a peer's and refuse to start, even if the peer's
// data is wrong.
func TestCorruptAlarmBlocksRestart(t *testing.T) {
	for _, alarm := range []string{"", "memberID:1 alarm:CORRUPT", "memberID:2 alarm:CORRUPT", "alarm:CORRUPT"} {
		l := newLife(t)
		c := l.seen(l.old)
		l.etcd.alarm.Store(&alarm)
		c.live.kube = clientOf(t, &podServer{pods: l.pods, restarts: 1})
		notYet, err := c.othersStillAnswer(t.Context(), "a-1", "")
		if err != nil || (notYet == "") != (alarm == "") {
			t.Errorf("with alarm %q: %q, %v", alarm, notYet, err)
		}
	}
}

// TestRestartKeepsVolume checks that a pod is kept if its claim has been deleted or replaced since it was observed. The
// volume would be deleted with the pod, and in a cluster of one member it holds the only copy of the data. If the claim
// was already being deleted when it was observed, the pod is not kept.
func TestRestartKeepsVolume(t *testing.T) {
	for _, test := range []struct {
		name             string
		seen, now        bool // whether the claim is being deleted
		silent, recreate bool
		deletes          bool
	}{
		{name: "claim is kept", deletes: true},
		{name: "claim is now being deleted", now: true},
		{name: "claim is now being deleted, member not responding", now: true, silent: true},
		{name: "claim was replaced", recreate: true},
		{name: "claim was already being deleted", seen: true, now: true, silent: true, deletes: true},
	} {
		l := newLife(t)
		l.etcd.running[1].hangs.Store(test.silent)
		c := l.seen(l.old)
		c.state.Replicas[1].VolumeUID, c.state.Replicas[1].VolumeTerminating = "volume-1", test.seen
		claim := claimed("volume-1")
		if test.now {
			claim.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		if test.recreate {
			claim.UID = "volume-9"
		}
		server := &podServer{pods: l.pods, restarts: 1, claim: claim}
		c.live.kube = clientOf(t, server)
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
		if waits := strings.Contains(outcome.Detail, "PersistentVolumeClaim data-a-1"); err != nil || server.deleted != test.deletes || waits == test.deletes {
			t.Errorf("%s: %+v, %v, deleted %t", test.name, outcome, err, server.deleted)
		}
	}
}
