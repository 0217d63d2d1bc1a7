package clusters

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
