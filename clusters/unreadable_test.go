package clusters

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestUnreadable: a custom resource that the API server lets through and Go cannot read is an error
// of that cluster, which is not taken for absent, and of no other.
func TestUnreadable(t *testing.T) {
	s := newStage(t)
	for name, size := range map[string]string{"a": "8Gi", "bad": "1e1.5"} {
		object := fmt.Sprintf(`{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": %q}, "spec": {"version": "3.6.16", "storage": {"size": %q}}}`, name, size)
		created := s.server.Client.CoreV1().RESTClient().Post().AbsPath("/apis/etcd.quorate.dev/v1alpha1/namespaces/default/etcdclusters").Body([]byte(object)).Do(t.Context())
		if err := created.Error(); err != nil {
			t.Fatal(err)
		}
	}
	for _, desired := range []reconcile.Desired{{Live: true}, {Clusters: []reconcile.Declaration{{Cluster: v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}}}}}} {
		seen, err := s.live.Observe(t.Context(), desired, nil)
		if err != nil || len(seen.Clusters) == 0 {
			t.Fatalf("%d clusters: %v", len(seen.Clusters), err)
		}
		for _, c := range seen.Clusters {
			_, name := c.Identity()
			_, err := c.State(t.Context())
			if unreadable := err != nil && strings.Contains(err.Error(), "has to be corrected"); unreadable != (name == "bad") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	sorter := inventory.NewSorter(inventory.AnyCluster)
	if _, err := s.live.kube.List(t.Context(), "default", objects.Managed, sorter); err != nil {
		t.Fatal(err)
	}
	for k, own := range sorter.Listed() {
		c := s.live.newCluster(targets.Target{Cluster: *own.Custom}, own, nil)
		_, err := c.State(t.Context())
		unreadable := err != nil && strings.Contains(err.Error(), "read EtcdCluster default/bad, which has to be corrected: ")
		if bad := k.Name == "bad"; unreadable != bad || own.Custom.UID == "" {
			t.Errorf("%s: %v", k, err)
		}
		if k.Name == "bad" {
			if _, err := c.Report(t.Context(), report.Cluster{Error: "x"}, reconcile.SourceState{}); err != nil {
				t.Errorf("its status is written: %v", err)
			}
		}
	}
}
