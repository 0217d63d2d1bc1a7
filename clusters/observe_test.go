package clusters

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRemaining checks that only objects that Quorate creates belong to the cluster, regardless of other objects with
// its labels.
func TestRemaining(t *testing.T) {
	three := int32(3)
	own := &inventory.Cluster{Objects: map[string]metav1.Object{
		"StatefulSet/a":       &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &three}},
		"ConfigMap/a-members": &corev1.ConfigMap{},
		"ConfigMap/a-notes":   &corev1.ConfigMap{},
		"Secret/a-ca":         &corev1.Secret{},
	}}
	c := &cluster{own: own, names: objects.NamesOf("a")}
	c.target.Cluster.Name = "a"
	if got, want := c.remaining(), []string{"ConfigMap a-members", "Secret a-ca", "StatefulSet a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.readTemplate()
	if got := c.state.Objects.RunsReplicas; got != 3 {
		t.Errorf("the StatefulSet runs %d replicas, want 3", got)
	}
}

// TestUnrelatedClaimsAreNotReplicas checks that a claim with the labels but not the name of a member's claim is not in
// a slot, in either listing order.
func TestUnrelatedClaimsAreNotReplicas(t *testing.T) {
	claim := func(name, uid string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	}
	c := &cluster{own: &inventory.Cluster{Claims: []*corev1.PersistentVolumeClaim{claim("data-z-0", "v0"), claim("z-0", "w0"), claim("z-1", "w1")}}}
	c.target.Cluster.Name = "z"
	if got := c.replicas(); len(got) != 1 || got[0].VolumeUID != "v0" {
		t.Errorf("%+v", got)
	}
}

// TestOlderPodQuotaIsReadFromItsFile checks that the quota of a pod built from a different declaration is read from
// that pod's file.
func TestOlderPodQuotaIsReadFromItsFile(t *testing.T) {
	files := map[string]string{
		"z-0-3.6.16-h1.yaml": "data-dir: d\nquota-backend-bytes: 2147483648\n",
		"z-1-3.6.16-h1.yaml": "data-dir: d\nquota-backend-bytes: many\n",
		"z-2-3.6.16-h2.yaml": "data-dir: d\nquota-backend-bytes: 4294967296\n",
		"z-4-3.6.16-h1.yaml": "data-dir: d\nquota-backend-bytes: -1\n",
	}
	c := &cluster{own: &inventory.Cluster{Objects: map[string]metav1.Object{"ConfigMap/z-members": &corev1.ConfigMap{Data: files}}}, names: objects.NamesOf("z")}
	c.state.Name, c.state.Declared.Version, c.state.Declared.SpecHash = "z", "3.6.16", "h2"
	for n, hash := range []string{"h1", "h1", "h2", "h1", "h1"} {
		c.state.Replicas = append(c.state.Replicas, decide.Replica{Ordinal: n, PodUID: "p", PodVersion: "3.6.16", PodSpecHash: hash})
	}
	c.readQuotas()
	for n, want := range []int64{2 << 30, 0, 0, 0, 0} {
		if got := c.state.Replicas[n].PodQuota; got != want {
			t.Errorf("z-%d: %d, want %d", n, got, want)
		}
	}
	c.own.Objects = nil
	c.readQuotas()
}
