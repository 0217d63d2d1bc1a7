package clusters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestVolumesNow checks that a volume is recorded only if it existed both before and after the member responded.
func TestVolumesNow(t *testing.T) {
	for _, test := range []struct {
		name   string
		now    *corev1.PersistentVolumeClaim
		sealed decide.Ordinals
		want   string
		asked  int
	}{
		{"same claim", claimed("v1"), decide.Ordinals(0).With(1), "v1", 1},
		{"claim was recreated after listing", claimed("v2"), decide.Ordinals(0).With(1), "", 1},
		{"claim was deleted after listing", nil, decide.Ordinals(0).With(1), "", 1},
		{"member is not being sealed", nil, decide.Ordinals(0).With(0), "v1", 0},
	} {
		server := &storageServer{claim: test.now}
		c := &cluster{live: &Live{kube: clientOf(t, server)}, target: targets.Target{Cluster: v1alpha1.EtcdCluster{}}}
		c.state = decide.State{Name: "a", Replicas: []decide.Replica{{Ordinal: 0}, {Ordinal: 1, VolumeUID: "v1"}}}
		got, err := c.volumesNow(t.Context(), test.sealed)
		if err != nil || got[1].VolumeUID != test.want || len(server.asked) != test.asked || c.state.Replicas[1].VolumeUID != "v1" {
			t.Errorf("%s: %+v, %v, asked for %q", test.name, got, err, server.asked)
		}
	}
}
