package clusters

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestUnreadable: a custom resource that the API server lets through and Go cannot read is an error of that cluster, which is not taken for absent, and
// of no other.
func TestUnreadable(t *testing.T) {
	s := newStage(t)
	client, err := dynamic.NewForConfig(s.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]string{"a": "8Gi", "bad": "1e1.5"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"version": "3.6.16", "storage": map[string]any{"size": size}},
		}}
		if _, err := client.Resource(v1alpha1.Resource).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := s.live.kube.List(t.Context(), "default", managed)
	if err != nil {
		t.Fatal(err)
	}
	for k, own := range byCluster(listed) {
		c := s.live.newCluster(target{cluster: *own.custom}, own, nil)
		_, err := c.State(t.Context())
		unreadable := err != nil && strings.Contains(err.Error(), "read EtcdCluster default/bad, which has to be corrected: ")
		if bad := k.name == "bad"; unreadable != bad || own.custom.UID == "" {
			t.Errorf("%s: %v", k, err)
		}
		if k.name == "bad" {
			if err := c.Report(t.Context(), report.Cluster{Error: "x"}, reconcile.SourceState{}); err != nil {
				t.Errorf("its status is written: %v", err)
			}
		}
	}
}
