package targets

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// stated returns a declaration as it appears in a source.
func stated(replicas int64, size string) map[string]any {
	return map[string]any{
		"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster",
		"metadata": map[string]any{"name": "a", "namespace": "ns", "labels": map[string]any{"team": "x"}},
		"spec":     map[string]any{"version": "3.6.16", "replicas": replicas, "storage": map[string]any{"size": size}},
	}
}

// liveOf returns the live custom resource after the given declaration was applied.
func liveOf(t *testing.T, applied map[string]any) *v1alpha1.EtcdCluster {
	t.Helper()
	live := &v1alpha1.EtcdCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(Target{Applied: applied, Cluster: v1alpha1.EtcdCluster{}}.Declaration(), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Lifecycle = v1alpha1.LifecycleRunning // a default that the API server sets
	return live
}

func TestDeclarationDrift(t *testing.T) {
	replicas := int32(5)
	tests := []struct {
		name   string
		source map[string]any
		live   func() *v1alpha1.EtcdCluster
		want   string
	}{
		{"custom resource is missing", stated(3, "1Gi"), func() *v1alpha1.EtcdCluster { return nil }, "missing"},
		{"matches the declaration", stated(3, "1Gi"), func() *v1alpha1.EtcdCluster { return liveOf(t, stated(3, "1Gi")) }, ""},
		{"source has no declaration", nil, func() *v1alpha1.EtcdCluster { return liveOf(t, stated(3, "1Gi")) }, ""},
		{"source has changed", stated(3, "2Gi"), func() *v1alpha1.EtcdCluster { return liveOf(t, stated(3, "1Gi")) }, "changed in git"},
		{"same size in different units", stated(3, "1024Mi"), func() *v1alpha1.EtcdCluster {
			live := liveOf(t, stated(3, "1024Mi"))
			live.Spec.Storage.Size = liveOf(t, stated(3, "1Gi")).Spec.Storage.Size
			return live
		}, ""},
		{"scaled manually", stated(3, "1Gi"), func() *v1alpha1.EtcdCluster {
			live := liveOf(t, stated(3, "1Gi"))
			live.Spec.Replicas = &replicas
			return live
		}, "spec.replicas differs from the declaration"},
		{"label was removed", stated(3, "1Gi"), func() *v1alpha1.EtcdCluster {
			live := liveOf(t, stated(3, "1Gi"))
			delete(live.Labels, "team")
			return live
		}, "metadata.labels.team differs from the declaration"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := (Target{Applied: test.source}).Drift(test.live()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDeclarationDoesNotChangeSource(t *testing.T) {
	source := stated(3, "1Gi")
	before := digest(source)
	Target{Applied: source}.Declaration()
	if digest(source) != before {
		t.Error("creating the declaration changed the source's object")
	}
}

// TestOmittedReplicasKeepLiveValue checks that the live object's replicas are used if the source omits them.
func TestOmittedReplicasKeepLiveValue(t *testing.T) {
	source := stated(3, "1Gi")
	delete(source["spec"].(map[string]any), "replicas")
	three, five := int32(3), int32(5)
	declared := Target{Applied: source, Cluster: v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{Replicas: &three}}}
	live := liveOf(t, source)
	live.Spec.Replicas = &five
	if got := *declared.against(live).Cluster.Spec.Replicas; got != five {
		t.Errorf("left out: got %d replicas, want %d", got, five)
	}
	declared.Applied = stated(3, "1Gi")
	if got := *declared.against(live).Cluster.Spec.Replicas; got != three {
		t.Errorf("stated: got %d replicas, want %d", got, three)
	}
}
