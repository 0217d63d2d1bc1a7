package targets

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestVolumeSizeCannotBeReverted checks that a smaller size in git is refused even if the volumes have not grown yet,
// because the custom resource contains the larger size. The message explains this and names the size to declare.
func TestVolumeSizeCannotBeReverted(t *testing.T) {
	with := func(size string) *v1alpha1.EtcdCluster {
		c := liveOf(t, stated(3, size))
		c.Spec.Etcd.Quota = resource.MustParse("1Gi")
		c.Spec.Image.Repository = "registry.example.com/etcd"
		return c
	}
	for _, test := range []struct{ applied, declared, want string }{
		{"16Gi", "8Gi", "a volume cannot shrink; the custom resource already has 16Gi, which cannot be reduced even if the volumes have not grown. Declare 16Gi again"},
		{"8Gi", "16Gi", ""},
		{"8Gi", "8192Mi", ""},
	} {
		got := strings.Join(Target{Cluster: *with(test.declared)}.forbiddenChanges(with(test.applied)), "\n")
		if (test.want == "") != (got == "") || !strings.HasSuffix(got, test.want) {
			t.Errorf("%s after %s: %q, want %q", test.declared, test.applied, got, test.want)
		}
	}
}

// TestDescribeStorageNormalizesSize checks that equal sizes have the same description in any notation. Otherwise, a
// difference would be reported as long as the volumes exist.
func TestDescribeStorageNormalizesSize(t *testing.T) {
	for _, size := range []string{"8Gi", "8192Mi", "8589934592", "8589934592000m"} {
		if got := DescribeStorage(v1alpha1.StorageSpec{Size: resource.MustParse(size)}); got != "8Gi" {
			t.Errorf("%s: got %s", size, got)
		}
	}
}
