package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLossIsConfirmedBeforeRemoval checks that the evidence that a member is lost is read again immediately before the
// removal is requested from etcd.
func TestLossIsConfirmedBeforeRemoval(t *testing.T) {
	going := claimed("v1")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	home := volumeOn(in(corev1.LabelHostname, "n1"))
	nodes := func(names ...string) *corev1.NodeList {
		list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, name := range names {
			list.Items = append(list.Items, nodeNamed(name))
		}
		return list
	}
	for _, test := range []struct {
		name    string
		loss    decide.Loss
		uid     string
		answers bool
		silent  bool // did not respond when observed
		others  int  // voters that responded before but are no longer listed by etcd
		server  storageServer
		want    string
	}{
		{name: "claim is deleted", loss: decide.VolumeLost, uid: "v1"},
		{name: "claim was replaced", loss: decide.VolumeLost, uid: "v1", server: storageServer{claim: claimed("v2")}},
		{name: "claim is now being deleted", loss: decide.VolumeLost, uid: "v1", server: storageServer{claim: going}},
		{name: "claim still exists", loss: decide.VolumeLost, uid: "v1", server: storageServer{claim: claimed("v1")}, want: "PersistentVolumeClaim data-a-1 still exists"},
		{name: "claim is deleted, but member responds", loss: decide.VolumeLost, uid: "v1", answers: true, want: "a-1 responds"},
		{name: "member is not responding", loss: decide.Silence},
		{name: "member responds again", loss: decide.Silence, answers: true, want: "a-1 responds"},
		{name: "claim is being deleted", loss: decide.VolumeGoing, uid: "v1", answers: true, server: storageServer{claim: going}},
		{name: "claim is being deleted, member responds again", loss: decide.VolumeGoing, uid: "v1", silent: true, answers: true, server: storageServer{claim: going}, want: "a-1 responds"},
		{name: "claim is being deleted, member not responding", loss: decide.VolumeGoing, uid: "v1", silent: true, server: storageServer{claim: going}},
		{name: "claim is not being deleted", loss: decide.VolumeGoing, uid: "v1", answers: true, server: storageServer{claim: claimed("v1")}, want: "PersistentVolumeClaim data-a-1 still exists"},
		{name: "node of the volume is gone", loss: decide.VolumeStranded, uid: "v1", server: storageServer{claim: claimed("v1"), volume: home, nodes: nodes("n2")}},
		{
			name: "node of the volume is back", loss: decide.VolumeStranded, uid: "v1", server: storageServer{claim: claimed("v1"), volume: home, nodes: nodes("n2", "n1")},
			want: "volume pvc-1 is reachable again",
		},
		{
			name: "claim of the stranded volume was replaced", loss: decide.VolumeStranded, uid: "v0", server: storageServer{claim: claimed("v1"), volume: home, nodes: nodes("n2")},
			want: "PersistentVolumeClaim data-a-1 has been replaced",
		},
		{name: "surplus member", loss: "", answers: true},
		{name: "a different voter is no longer listed", loss: decide.Silence, others: 1, want: "the other voters have changed"},
		{name: "corruption is no longer reported", loss: decide.Corruption, answers: true, want: "the member's data is no longer known to differ from the majority's"},
	} {
		now := decide.Membership{Known: true, Members: []decide.Member{{ID: 2, Name: "a-1", Answers: test.answers}}}
		c := &cluster{live: &Live{kube: clientOf(t, &test.server)}, state: decide.State{Name: "a", Membership: now}}
		if test.silent {
			c.state.Membership.Members = []decide.Member{{ID: 2, Name: "a-1"}}
		}
		for n := range test.others {
			c.state.Membership.Members = append(slices.Clone(now.Members), decide.Member{ID: decide.ID(3 + n), Answers: true})
		}
		a := decide.RemoveMember{ID: 2, Name: "a-1", Evidence: decide.LossEvidence{Loss: test.loss, VolumeUID: test.uid}}
		got, err := c.disproof(t.Context(), a, now)
		if got != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q; asked for %q", test.name, got, err, test.want, test.server.asked)
		}
	}
}

// TestUnreadableLossEvidenceIsAnError checks that evidence of a loss does not count if it cannot be read again.
func TestUnreadableLossEvidenceIsAnError(t *testing.T) {
	c := &cluster{live: &Live{kube: clientOf(t, &storageServer{refuse: true})}, state: decide.State{Name: "a"}}
	a := decide.RemoveMember{ID: 2, Name: "a-1", Evidence: decide.LossEvidence{Loss: decide.VolumeLost, VolumeUID: "v1"}}
	if _, err := c.disproof(t.Context(), a, decide.Membership{Known: true}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Error(err)
	}
}

// TestRemovalNeedsProof checks that a member is not removed from etcd for having lost its volume while that volume
// exists.
func TestRemovalNeedsProof(t *testing.T) {
	l := newLife(t)
	l.etcd.running[1].hangs.Store(true)
	c := l.seen(l.old)
	server := &storageServer{claim: claimed("volume-1"), claims: []*corev1.PersistentVolumeClaim{l.claims[0], l.claims[2]}}
	c.live.kube = clientOf(t, server)
	a := decide.RemoveMember{ID: 2, Name: "a-1", Evidence: decide.LossEvidence{Loss: decide.VolumeLost, VolumeUID: "volume-1"}}
	if outcome, err := c.removeMember(t.Context(), a); err != nil || outcome.Changed || !strings.Contains(outcome.Detail, "data-a-1 still exists") {
		t.Errorf("%+v, %v", outcome, err)
	}
	if len(l.etcd.members) != 3 {
		t.Fatal("the member is removed although its volume exists")
	}
	server.claim = claimed("another")
	if outcome, err := c.removeMember(t.Context(), a); err != nil || !outcome.Changed || len(l.etcd.members) != 2 {
		t.Errorf("%+v, %v, %d members", outcome, err, len(l.etcd.members))
	}
}

// TestSurplusMemberWithLastCopyIsKept checks that a surplus member, whose data would be deleted next, is kept until
// another member has its data on a volume that is not being deleted.
func TestSurplusMemberWithLastCopyIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		deleted string
		alarm   string
		evicted int
		want    bool
	}{
		"nothing is deleted":               {"", "", -1, true},
		"its own claim is being deleted":   {"data-a-1", "", -1, true},
		"the other claim is being deleted": {"data-a-0", "", -1, false},
		"etcd has raised a CORRUPT alarm":  {"", "alarm:CORRUPT", -1, false},
		"its own pod is evicted":           {"", "", 1, true},
		"the other pod is evicted":         {"", "", 0, false},
	} {
		l := newLife(t)
		l.etcd.members, l.pods = l.etcd.members[:2:2], l.pods[:2]
		l.record.Members = l.record.Members[:2:2]
		c := l.seen(l.old)
		c.state.Declared.Replicas = 1
		for i := range c.state.Replicas {
			c.state.Replicas[i].VolumeUID = fmt.Sprint("volume-", i)
		}
		a, is := decide.Decide(c.state).Action.(decide.RemoveMember)
		if !is {
			t.Fatalf("%s: %s", name, decide.Decide(c.state))
		}
		l.etcd.alarm.Store(&test.alarm)
		c.live.kube = clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			claim := claimed("")
			claim.Name = path.Base(r.URL.Path)
			claim.UID = types.UID("volume-" + claim.Name[len(claim.Name)-1:])
			if claim.Name == test.deleted {
				claim.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			var body any = claim
			if claim.Name == "pods" {
				list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
				for n, pod := range l.pods {
					list.Items = append(list.Items, *pod.DeepCopy())
					if n == test.evicted {
						list.Items[n].DeletionTimestamp = &metav1.Time{Time: noon}
					}
				}
				body = list
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body)
		}))
		now := c.askPatiently(t.Context()).Membership
		why, err := c.disproof(t.Context(), a, now)
		if err != nil || (why == "") != test.want {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}
