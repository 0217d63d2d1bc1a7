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

// Nor once etcd has found that members hold different data: one that is restarted compares its own with a peer's, and does
// not start if those are the wrong ones.
func TestRestartWaitsWhileDataAreInDoubt(t *testing.T) {
	for _, alarm := range []string{"", "memberID:1 alarm:CORRUPT", "memberID:2 alarm:CORRUPT", "alarm:CORRUPT"} {
		l := newLife(t)
		c := l.seen(l.old)
		l.etcd.alarm.Store(&alarm)
		notYet, err := c.othersStillAnswer(t.Context(), "a-1", "")
		if err != nil || (notYet == "") != (alarm == "") {
			t.Errorf("with %q: %q, %v", alarm, notYet, err)
		}
	}
}

// A pod stays while the claim of its volume is being deleted: once it ends, the volume goes with the data, of a cluster
// of one with all that there are. One that was seen to go is not kept by that.
func TestRestartKeepsVolume(t *testing.T) {
	for _, test := range []struct {
		name             string
		seen, now        bool // it is being deleted
		silent, recreate bool
		deletes          bool
	}{
		{name: "it stays", deletes: true},
		{name: "it goes by now", now: true},
		{name: "it goes by now, and the member is silent", now: true, silent: true},
		{name: "it is another one", recreate: true},
		{name: "it was going", seen: true, now: true, silent: true, deletes: true},
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
		pod := l.pods[1].DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		deleted := false
		c.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			deleted = deleted || r.Method == http.MethodDelete
			var body any = pod
			if strings.Contains(r.URL.Path, "/persistentvolumeclaims/") {
				body = claim
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body)
		}))
		outcome, err := c.restartReplica(t.Context(), decide.RestartReplica{Ordinal: 1, PodUID: string(pod.UID)})
		if waits := strings.Contains(outcome.Detail, "PersistentVolumeClaim data-a-1"); err != nil || deleted != test.deletes || waits == test.deletes {
			t.Errorf("%s: %+v, %v, deleted %t", test.name, outcome, err, deleted)
		}
	}
}
