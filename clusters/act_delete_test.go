package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// TestMemberGone checks that a member counts as gone only if etcd lists neither that member nor a member whose slot is
// not yet known.
func TestMemberGone(t *testing.T) {
	for name, test := range map[string]struct {
		also *listedMember
		want string
	}{
		"not listed":                     {nil, "<nil>"},
		"still listed":                   {&listedMember{ID: 3, Name: "a-2", PeerURLs: []string{peerOf(2)}}, "etcd still lists a-2 (3)"},
		"added again as a learner":       {&listedMember{ID: 9, PeerURLs: []string{peerOf(2)}, IsLearner: true}, "etcd still lists a-2 (9)"},
		"different replica is listed":    {&listedMember{ID: 9, PeerURLs: []string{peerOf(3)}, IsLearner: true}, "<nil>"},
		"unknown member is listed":       {&listedMember{ID: 9, Name: "guest", PeerURLs: []string{"http://10.0.0.9:2380"}}, "<nil>"},
		"unknown member has not started": {&listedMember{ID: 9, PeerURLs: []string{"http://10.0.0.9:2380"}, IsLearner: true}, "etcd lists a member (9) that has not started and may be a-2"},
	} {
		l := newLife(t)
		l.etcd.members = l.etcd.members[:2:2]
		c := l.seen(l.old)
		if test.also != nil {
			l.etcd.members = append(l.etcd.members, test.also)
		}
		if got := fmt.Sprint(c.memberGone(t.Context(), 2)); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestKeptVolumeStaysWhileMembersAreUnhealthy checks that a volume left by a lost cluster is kept, even if git requests
// its deletion, while a member is not responding, or while a claim is being deleted or has been replaced. Until the new
// cluster is healthy, that volume may contain better data.
func TestKeptVolumeStaysWhileMembersAreUnhealthy(t *testing.T) {
	going := metav1.Time{Time: noon}
	for name, test := range map[string]struct {
		silent bool
		change func(*corev1.PersistentVolumeClaim)
		goes   bool
	}{
		"all members respond":        {goes: true},
		"a member is not responding": {silent: true},
		"a claim is being deleted":   {change: func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &going }},
		"a claim has been replaced":  {change: func(claim *corev1.PersistentVolumeClaim) { claim.UID = "another" }},
	} {
		l := newLife(t)
		l.etcd.members, l.pods = l.etcd.members[:2:2], l.pods[:2]
		l.record.Members, l.record.Recovery = l.record.Members[:2:2], decide.RecordedRecovery{ClusterID: 0xdead}
		l.record.Removed = []decide.RemovedMember{{Ordinal: 2, VolumeUID: "volume-2", LostCluster: 0xdead}}
		c := l.seen(l.old)
		c.state.Declared.Recovery = decide.RecoveryOrder{ClusterID: 0xdead, OldVolumes: decide.Delete}
		for i := range c.state.Replicas {
			c.state.Replicas[i].VolumeUID = fmt.Sprint("volume-", i)
		}
		c.state.Replicas = append(c.state.Replicas, decide.Replica{Ordinal: 2, Pod: decide.PodAbsent, VolumeUID: "volume-2"})
		if d := decide.Decide(c.state); d.Action != (decide.DeleteVolume{Ordinal: 2, VolumeUID: "volume-2"}) {
			t.Fatal(d)
		}
		l.etcd.running[1].hangs.Store(test.silent)
		c.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			claim := claimed("")
			claim.Name = path.Base(r.URL.Path)
			claim.UID = types.UID("volume-" + claim.Name[len(claim.Name)-1:])
			if claim.Name == "data-a-0" && test.change != nil {
				test.change(claim)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(claim)
		}))
		if err := c.memberGone(t.Context(), 2); (err == nil) != test.goes {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCanceledDeletionDeletesNothing checks that all remaining objects are kept if the deletion has been canceled. If
// the custom resources are the source, the list of a large fleet may be seconds old when a pass acts on one of its
// clusters.
func TestCanceledDeletionDeletesNothing(t *testing.T) {
	s := newStage(t)
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	s.form()
	s.makePods()
	s.endPods()
	custom := s.server.Objects.Resource(v1alpha1.Resource).Namespace("default")
	declare := func(patch string) {
		t.Helper()
		if _, err := custom.Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	live := func() *cluster {
		t.Helper()
		seen, err := s.live.Observe(t.Context(), reconcile.Desired{Live: true}, nil)
		if err != nil || len(seen.Clusters) != 1 {
			t.Fatalf("%d clusters: %v", len(seen.Clusters), err)
		}
		c := seen.Clusters[0].(*cluster)
		if _, err := c.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	declare(`{"spec": {"lifecycle": "Deleted", "storage": {"retention": "Delete"}}}`)
	s.do(live(), decide.ApplyObjects{}, true)
	late := live()
	declare(`{"spec": {"lifecycle": "Running"}}`)
	s.do(late, decide.DeleteObjects{}, false)
	s.do(late, decide.DeleteVolume{Ordinal: 2, VolumeUID: late.state.Replica(2).VolumeUID}, false)
	if c := live(); len(c.own.Claims) != 3 || c.state.Replica(2).VolumeTerminating || len(c.own.Objects) != len(late.identities()) {
		t.Errorf("%d objects are left, and %+v", len(c.own.Objects), c.state.Replicas)
	}
	declare(`{"spec": {"lifecycle": "Deleted"}}`)
	late = live()
	s.do(late, decide.DeleteVolume{Ordinal: 2, VolumeUID: late.state.Replica(2).VolumeUID}, true)
	s.do(live(), decide.DeleteObjects{}, true)
}
