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
)

// Whatever has the labels, only what Quorate makes is the cluster's.
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

// A claim that has the labels and not the name of one of a member is in no slot, whichever is listed last.
func TestReplicasByClaims(t *testing.T) {
	claim := func(name, uid string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	}
	c := &cluster{own: &inventory.Cluster{Claims: []*corev1.PersistentVolumeClaim{claim("data-z-0", "v0"), claim("z-0", "w0"), claim("z-1", "w1")}}}
	c.target.Cluster.Name = "z"
	if got := c.replicas(); len(got) != 1 || got[0].VolumeUID != "v0" {
		t.Errorf("%+v", got)
	}
}
