package targets

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// A size that git takes back, and one that is smaller than what runs, are refused alike, as the
// custom resource says the larger one: so that is what the message says, and what may be declared.
func TestASizeIsNotTakenBack(t *testing.T) {
	with := func(size string) *v1alpha1.EtcdCluster {
		c := liveOf(t, stated(3, size))
		c.Spec.Etcd.Quota = resource.MustParse("1Gi")
		c.Spec.Image.Repository = "registry.example.com/etcd"
		return c
	}
	for _, test := range []struct{ applied, declared, want string }{
		{"16Gi", "8Gi", "a volume cannot shrink; the custom resource says 16Gi, which cannot be taken back, whether the volumes have grown or not: declare 16Gi again"},
		{"8Gi", "16Gi", ""},
		{"8Gi", "8192Mi", ""},
	} {
		got := strings.Join(Target{Cluster: *with(test.declared)}.forbiddenChanges(with(test.applied)), "\n")
		if (test.want == "") != (got == "") || !strings.HasSuffix(got, test.want) {
			t.Errorf("%s after %s: %q, want %q", test.declared, test.applied, got, test.want)
		}
	}
}

// A size is the same however it is spelled: a difference would be reported for as long as the volumes live.
func TestSizeIsTheSameInEachSpelling(t *testing.T) {
	for _, size := range []string{"8Gi", "8192Mi", "8589934592", "8589934592000m"} {
		if got := DescribeStorage(v1alpha1.StorageSpec{Size: resource.MustParse(size)}); got != "8Gi" {
			t.Errorf("%s: got %s", size, got)
		}
	}
}
