package clusters

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestChangesReportDeclarationChanges checks that changes reports whether a declaration may have changed, and that a
// cluster that was never listed is listed after a change.
func TestChangesReportDeclarationChanges(t *testing.T) {
	l := New(nil, Options{})
	known := &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u1", Generation: 2}}
	l.last.Store(&listing{inventory: inventory.ByCluster{inventory.KeyOf(known): {Custom: known}}})
	c := &changes{woken: make(chan struct{}, 1), clusters: map[string]bool{}}
	changed := known.DeepCopy()
	changed.Generation = 3
	again := known.DeepCopy()
	again.UID = "u2"
	stranger := &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "new", Generation: 1}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-0", Labels: objects.Labels("a")}}
	for _, test := range []struct {
		told []metav1.Object
		want map[string]bool
		all  bool
	}{
		{told: []metav1.Object{pod, known}, want: map[string]bool{"ns/a": false}},
		{told: []metav1.Object{changed, pod}, want: map[string]bool{"ns/a": true}},
		{told: []metav1.Object{again}, want: map[string]bool{"ns/a": true}},
		{told: []metav1.Object{stranger, nil}, want: map[string]bool{"ns/new": true}, all: true},
	} {
		for _, object := range test.told {
			c.note(l, object)
		}
		if got, all := c.Take(); !maps.Equal(got, test.want) || all != test.all {
			t.Errorf("%v: got %v, %t", test.told, got, all)
		}
	}
	keys, _ := l.wantedOf(reconcile.Desired{}, func(string) bool { return true })
	if len(keys) != 2 || !slices.Contains(keys, inventory.KeyOf(stranger)) {
		t.Errorf("%v would be listed", keys)
	}
}
