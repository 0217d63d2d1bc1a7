package objects

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

func TestDefaultQuota(t *testing.T) {
	for size, want := range map[string]string{
		"256Mi": "128Mi", // the smallest volume
		"1Gi":   "512Mi", "1G": "476Mi", "3Gi": "1536Mi", "1073741825": "512Mi",
		"4Gi": "2Gi", "8Gi": "2Gi", "1Ti": "2Gi",
		"1e20000000": "2Gi", // computed quickly
		"0":          "0", "-8Gi": "0",
	} {
		start := time.Now()
		if got := DefaultQuota(resource.MustParse(size)); got.String() != want {
			t.Errorf("%s: got %s, want %s", size, got.String(), want)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%s took %s", size, took)
		}
	}
}

// TestOmittedQuotaUsesDefault checks that the default quota is written to etcd's file if the quota is omitted, because
// etcd's own default is always 2Gi. Declaring the default explicitly does not change the pods.
func TestOmittedQuotaUsesDefault(t *testing.T) {
	spec := v1alpha1.EtcdClusterSpec{Version: "3.6.16", Storage: v1alpha1.StorageSpec{Size: quantity("1Gi")}}
	stated := *spec.DeepCopy()
	stated.Etcd.Quota = quantity("512Mi")
	keys, _ := etcdOptions(spec)
	if got := keys["quota-backend-bytes"]; got != int64(512<<20) {
		t.Errorf("etcd gets a quota of %v", got)
	}
	if SpecHash(&v1alpha1.EtcdCluster{Spec: spec}) != SpecHash(&v1alpha1.EtcdCluster{Spec: stated}) {
		t.Error("stating the default changes the pods")
	}
}

// TestInspectionMemoryGrowsWithQuota checks that the memory for inspecting a database grows with the quota.
func TestInspectionMemoryGrowsWithQuota(t *testing.T) {
	for quota, want := range map[string]string{"": "256Mi", "8Gi": "256Mi", "16Gi": "384Mi", "100Gi": "1728Mi"} {
		spec := v1alpha1.EtcdClusterSpec{Storage: v1alpha1.StorageSpec{Size: quantity("200Gi")}}
		if quota != "" {
			spec.Etcd.Quota = quantity(quota)
		}
		if got := inspectionMemory(spec, "256Mi"); got.String() != want {
			t.Errorf("quota %q: %s, want %s", quota, got.String(), want)
		}
	}
}
