package clusters

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/reconcile/decide"
)

// A member that serves is not restarted once somebody has removed another one: of the two that are left, the one that
// would stay is no majority, although it answers.
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
		deleted := false
		c.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			deleted = deleted || r.Method == http.MethodDelete
			pod := l.pods[1].DeepCopy()
			pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(pod)
		}))
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(l.pods[1].UID)})
		if waits := strings.Contains(outcome.Detail, "the other voters are not as they were"); err != nil || deleted == removed || waits != removed {
			t.Errorf("removed %t: %+v, %v, deleted %t", removed, outcome, err, deleted)
		}
	}
}
