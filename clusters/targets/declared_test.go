package targets

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

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

// TestDigestCoversTheSpec checks that the digest that ties a run to an approved plan changes with every field,
// including fields that do not restart pods, and with the run's backup image.
func TestDigestCoversTheSpec(t *testing.T) {
	spec := v1alpha1.EtcdClusterSpec{
		Storage:       v1alpha1.StorageSpec{Size: resource.MustParse("8Gi")},
		NetworkPolicy: &v1alpha1.NetworkPolicySpec{Clients: []v1alpha1.NetworkPeer{{CIDR: "192.0.2.0/24"}}},
		Backup:        &v1alpha1.BackupSpec{Schedule: "@daily", To: v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{ClaimName: "v"}}},
	}
	digest := func(edit func(*v1alpha1.EtcdClusterSpec), settings ...string) string {
		target := Target{Cluster: v1alpha1.EtcdCluster{Spec: *spec.DeepCopy()}}
		edit(&target.Cluster.Spec)
		return target.Digest(settings...)
	}
	approved := digest(func(*v1alpha1.EtcdClusterSpec) {}, "image")
	for name, edit := range map[string]func(*v1alpha1.EtcdClusterSpec){
		"networkPolicy":    func(s *v1alpha1.EtcdClusterSpec) { s.NetworkPolicy.Clients[0].CIDR = "0.0.0.0/0" },
		"no networkPolicy": func(s *v1alpha1.EtcdClusterSpec) { s.NetworkPolicy = nil },
		"backup.to":        func(s *v1alpha1.EtcdClusterSpec) { s.Backup.To.Volume.ClaimName = "w" },
		"backup.schedule":  func(s *v1alpha1.EtcdClusterSpec) { s.Backup.Schedule = "@hourly" },
		"pullSecrets":      func(s *v1alpha1.EtcdClusterSpec) { s.Image.PullSecrets = []v1alpha1.SecretReference{{Name: "s"}} },
		"storage.size":     func(s *v1alpha1.EtcdClusterSpec) { s.Storage.Size = resource.MustParse("9Gi") },
	} {
		if digest(edit, "image") == approved {
			t.Errorf("another %s has the same digest", name)
		}
	}
	same := func(*v1alpha1.EtcdClusterSpec) {}
	if digest(same, "image") != approved || digest(same, "another") == approved {
		t.Error("the digest depends on more than the spec and the image")
	}
}
