package targets

import (
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
)

func TestDeclared(t *testing.T) {
	after := v1alpha1.Duration("1h30m")
	d := Target{Orphaned: "gone", RenamedFrom: "ns/b", Cluster: v1alpha1.EtcdCluster{Spec: v1alpha1.EtcdClusterSpec{
		Storage: v1alpha1.StorageSpec{Retention: v1alpha1.RetentionDelete}, ReplaceAfter: &after,
	}}}
	got := d.Declared()
	if got.Retention != "Delete" || got.ReplaceAfter != 90*time.Minute || got.Orphaned != "gone" || got.RenamedFrom != "ns/b" {
		t.Errorf("got %+v", got)
	}
}
