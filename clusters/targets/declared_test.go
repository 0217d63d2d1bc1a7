package targets

import (
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
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

// TestDeclaredAdoption checks that the declared adoption, with IDs in any notation, reaches the rules.
func TestDeclaredAdoption(t *testing.T) {
	target := Target{Cluster: v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: v1alpha1.EtcdClusterSpec{
		TLS: v1alpha1.TLSSpec{Mode: v1alpha1.TLSDisabled},
		Adopt: &v1alpha1.AdoptionSpec{
			ClusterID: "00c1", Endpoints: []v1alpha1.EtcdEndpoint{"http://old-0:2379", "http://old-1:2379"}, Release: []v1alpha1.MemberID{"0b", "a"}, Abandon: true,
		},
	}}}
	want := decide.AdoptionOrder{
		ClusterID: 0xc1, Endpoints: []string{"http://old-0:2379", "http://old-1:2379"}, Release: []decide.ID{0xb, 0xa}, Abandon: true, PeerURL: "http://a-0.a.ns.svc:2380",
	}
	if got := target.Declared().Adoption; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, adopt := range []*v1alpha1.AdoptionSpec{nil, {ClusterID: "old"}, {ClusterID: "0", Abandon: true}} {
		target.Cluster.Spec.Adopt = adopt
		if got := target.Declared().Adoption; !reflect.DeepEqual(got, decide.AdoptionOrder{PeerURL: want.PeerURL}) {
			t.Errorf("%+v: got %+v", adopt, got)
		}
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
		"adopt.release": func(s *v1alpha1.EtcdClusterSpec) {
			s.Adopt = &v1alpha1.AdoptionSpec{Release: []v1alpha1.MemberID{"a1"}}
		},
		"storage.size": func(s *v1alpha1.EtcdClusterSpec) { s.Storage.Size = resource.MustParse("9Gi") },
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
