package clusters

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestFindSlots checks that a claim that is not listed because its labels were changed still belongs to its replica.
func TestFindSlots(t *testing.T) {
	labelled := claimed("v1")
	labelled.Labels = map[string]string{objects.LabelManagedBy: objects.ManagedBy, "etcd.quorate.dev/cluster": "a"}
	relabelled := claimed("v1")
	relabelled.Labels = map[string]string{objects.LabelManagedBy: "policy", "etcd.quorate.dev/cluster": "a"}
	const lost = "PersistentVolumeClaim data-a-1 has lost app.kubernetes.io/managed-by=quorate"
	const foreign = "PersistentVolumeClaim data-a-1 exists but was not created by Quorate for this cluster"
	for _, test := range []struct {
		name                string
		claim               *corev1.PersistentVolumeClaim
		recorded            string
		relabelled, foreign string
	}{
		{"created after listing", labelled, "v0", "", ""},
		{"relabeled, but recorded", relabelled, "v1", lost, ""},
		{"relabeled and not recorded", relabelled, "v0", "", foreign},
	} {
		c := &cluster{live: &Live{kube: clientOf(t, &storageServer{claim: test.claim})}, own: &inventory.Cluster{}}
		c.target.Cluster.Name = "a"
		c.own.Claims = []*corev1.PersistentVolumeClaim{claimNamed("data-a-0", "v9")}
		c.state = decide.State{Name: "a", Declared: decide.Declared{Replicas: 2, Lifecycle: decide.Stopped}}
		c.state.Record = c.state.Record.With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed, VolumeUID: test.recorded})
		if err := c.findSlots(t.Context()); err != nil {
			t.Fatal(err)
		}
		if uid := c.state.Replica(1).VolumeUID; uid != "v1" {
			t.Errorf("%s: the volume is %q", test.name, uid)
		}
		if got := strings.Join(c.state.Objects.Relabelled, ""); got != test.relabelled {
			t.Errorf("%s: relabelled %q", test.name, got)
		}
		if got := strings.Join(c.state.Objects.Foreign, ""); got != test.foreign {
			t.Errorf("%s: foreign %q", test.name, got)
		}
	}
}

func claimNamed(name string, uid types.UID) *corev1.PersistentVolumeClaim {
	c := claimed(uid)
	c.Name = name
	return c
}

// TestForbiddenReplicasAreRefusedEarly checks that a forbidden number of replicas does not cause a request for each
// replica before the pass refuses the number. The schema forbids it, but a compromised rendering process may report it.
func TestForbiddenReplicasAreRefusedEarly(t *testing.T) {
	s := newStage(t)
	c := s.observe()
	c.state.Declared.Replicas = 1_000_000
	if allocated := testing.AllocsPerRun(1, func() {
		if err := c.findSlots(t.Context()); err != nil {
			t.Fatal(err)
		}
	}); allocated > 1_000_000 {
		t.Errorf("%.0f allocations", allocated)
	}
}
