package clusters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// A pod that has a node and a claim without a volume waits forever. Lists that were read at
// different moments do not make it so.
func TestFindUnbound(t *testing.T) {
	claim := func(uid types.UID, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		c := claimed(uid)
		c.Status.Phase = phase
		return c
	}
	for _, test := range []struct {
		name      string
		node      string
		phase     decide.PodPhase
		claim     *corev1.PersistentVolumeClaim
		now       *corev1.PersistentVolumeClaim
		want      bool
		wantAsked int
	}{
		{"waits forever", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v1", corev1.ClaimPending), true, 1},
		{"bound since it was listed", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v1", corev1.ClaimBound), false, 1},
		{"recreated since it was listed", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v2", corev1.ClaimPending), false, 1},
		{"gone since it was listed", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), nil, false, 1},
		{"has no node yet", "", decide.PodPending, claim("v1", corev1.ClaimPending), nil, false, 0},
		{"on its way", "n1", decide.PodPending, claim("v1", corev1.ClaimBound), nil, false, 0},
		{"runs", "n1", decide.PodReady, claim("v1", corev1.ClaimPending), nil, false, 0},
		{"without a claim", "n1", decide.PodPending, nil, nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &storageServer{claim: test.now}
			own := &clusterObjects{pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Spec: corev1.PodSpec{NodeName: test.node}}}}
			if test.claim != nil {
				own.claims = append(own.claims, test.claim)
			}
			c := &cluster{
				live: &Live{kube: clientOf(t, server)}, own: own, target: target{cluster: v1alpha1.EtcdCluster{}},
				state: decide.State{Name: "a", Replicas: []decide.Replica{{Ordinal: 1, Pod: test.phase}}},
			}
			if err := c.findUnbound(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.state.Replicas[0].PodUnbound; got != test.want || len(server.asked) != test.wantAsked {
				t.Errorf("got %t after asking %q", got, server.asked)
			}
		})
	}
}
