package clusters

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestVolumeBeingDeletedBlocksStop checks that pods are not stopped if a volume's deletion was requested after the
// cluster was observed, because the volume would disappear with its pod, even if that pod was already terminating. If
// the volume was already being deleted at that time and its pod was absent or terminating, pods are stopped, because
// the volume is lost anyway.
func TestVolumeBeingDeletedBlocksStop(t *testing.T) {
	for _, test := range []struct {
		name      string
		pod       decide.PodPhase
		was, goes bool // whether the volume is being deleted
		want      string
	}{
		{"claim is kept", decide.PodReady, false, false, ""},
		{"claim is now being deleted", decide.PodReady, false, true, "not yet: PersistentVolumeClaim data-a-1 is being deleted"},
		{"claim is now being deleted, pod was absent", decide.PodAbsent, false, true, "not yet: PersistentVolumeClaim data-a-1 is being deleted"},
		{"claim was being deleted, pod absent", decide.PodAbsent, true, true, ""},
		{"claim is now being deleted, pod terminating", decide.PodTerminating, false, true, "not yet: PersistentVolumeClaim data-a-1 is being deleted"},
		{"claim was being deleted, pod terminating", decide.PodTerminating, true, true, ""},
	} {
		claim := claimed("volume-1")
		if test.goes {
			claim.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		c := &cluster{live: &Live{kube: clientOf(t, &storageServer{claim: claim})}}
		c.target.Cluster.Name, c.target.Cluster.Spec.Lifecycle = "a", v1alpha1.LifecycleStopped
		r := decide.Replica{Ordinal: 1, PodUID: "pod-1", Pod: test.pod, VolumeUID: "volume-1", VolumeTerminating: test.was}
		if test.pod == decide.PodAbsent {
			r.PodUID = ""
		}
		c.state.Replicas = []decide.Replica{r}
		if got, err := c.stopsOnGoingVolume(t.Context()); err != nil || got != test.want {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}
