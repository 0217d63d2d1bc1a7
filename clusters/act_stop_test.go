package clusters

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Pods are not stopped once a volume is being deleted that only a pod keeps, be it one that was on its way when the
// cluster was observed. What was going without a pod then goes anyway.
func TestStopsOnGoingVolume(t *testing.T) {
	for _, test := range []struct {
		name      string
		pod       string
		was, goes bool // it is being deleted
		want      string
	}{
		{"all stays", "pod-1", false, false, ""},
		{"it goes by now", "pod-1", false, true, "not yet: PersistentVolumeClaim data-a-1 is being deleted"},
		{"it goes with a pod that is there by now", "", false, true, "not yet: PersistentVolumeClaim data-a-1 is being deleted"},
		{"it was going without a pod", "", true, true, ""},
	} {
		claim := claimed("volume-1")
		if test.goes {
			claim.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		c := &cluster{live: &Live{kube: clientOf(t, &storageServer{claim: claim})}}
		c.target.Cluster.Name, c.target.Cluster.Spec.Lifecycle = "a", v1alpha1.LifecycleStopped
		c.state.Replicas = []decide.Replica{{Ordinal: 1, PodUID: test.pod, Pod: decide.PodAbsent, VolumeUID: "volume-1", VolumeTerminating: test.was}}
		if got, err := c.stopsOnGoingVolume(t.Context()); err != nil || got != test.want {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}
