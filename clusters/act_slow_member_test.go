package clusters

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/reconcile/decide"
)

// slow returns a cluster in which a-1, whose pod is not ready, did not respond when observed and now responds slowly.
func slow(t *testing.T) (*life, *cluster) {
	l := newLife(t)
	l.old.etcd.Timeout = 4 * time.Second
	l.pods[1].Status.Conditions[0].Status = corev1.ConditionFalse
	l.etcd.running[1].hangs.Store(true)
	c := l.seen(l.old)
	if m := c.state.Membership; !m.Known || m.Members[1].Answers {
		t.Fatalf("%+v", m)
	}
	l.etcd.running[1].hangs.Store(false)
	l.etcd.running[1].takes.Store(int64(400 * time.Millisecond))
	return l, c
}

// TestRemovalWaitsForSlowMember checks that a member that did not respond when observed gets its full timeout again
// before it is removed as unresponsive.
func TestRemovalWaitsForSlowMember(t *testing.T) {
	l, c := slow(t)
	c.live.kube = clientOf(t, &storageServer{})
	for _, loss := range []decide.Loss{decide.Silence, decide.VolumeLost} {
		a := decide.RemoveMember{ID: 2, Name: "a-1", Evidence: decide.LossEvidence{Loss: loss}}
		outcome, err := c.removeMember(t.Context(), a)
		if err != nil || outcome.Changed || !strings.Contains(outcome.Detail, "a-1 responds") || len(l.etcd.members) != 3 {
			t.Errorf("%s: %+v, %v, %d members", loss, outcome, err, len(l.etcd.members))
		}
	}
}

// TestRestartWaitsForSlowMember checks that the pod of a slow member is not deleted before the full timeout.
func TestRestartWaitsForSlowMember(t *testing.T) {
	l, c := slow(t)
	deleted := false
	c.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deleted = deleted || r.Method == http.MethodDelete
		pod := l.pods[1].DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(pod)
	}))
	outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
	if err != nil || outcome.Changed || !strings.Contains(outcome.Detail, "a-1 responds") || deleted {
		t.Errorf("%+v, %v, deleted %t", outcome, err, deleted)
	}
}
