package objects

import (
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestFoundingIDMatchesEtcd checks that FoundingID returns the ID that etcd's own library derives from the members'
// files.
func TestFoundingIDMatchesEtcd(t *testing.T) {
	for _, tls := range []v1alpha1.TLSMode{v1alpha1.TLSManaged, v1alpha1.TLSDisabled} {
		for replicas := 1; replicas <= 9; replicas++ {
			c := &v1alpha1.EtcdCluster{}
			c.Namespace, c.Name, c.Spec.TLS.Mode = "b", "a", tls
			in := Input{Cluster: c, Record: decide.FoundingRecord("t1-l2", replicas)}
			urls, err := types.NewURLsMap(joinPeers(foundingPeers(in)))
			if err != nil {
				t.Fatal(err)
			}
			want, err := membership.NewClusterFromURLsMap(nil, clusterToken(in), urls)
			if err != nil {
				t.Fatal(err)
			}
			if got := FoundingID(c, in.Record); got != decide.ID(want.ID()) {
				t.Errorf("%d members, TLS %s: got %s, want %s", replicas, tls, got, want.ID())
			}
		}
	}
}

func TestFoundingIDOnlyWhileFounding(t *testing.T) {
	c := &v1alpha1.EtcdCluster{}
	sealed := decide.FoundingRecord("t1", 3).With(decide.RecordedMember{Ordinal: 1, Mode: decide.Sealed})
	for name, r := range map[string]decide.Record{"no record": {}, "sealed": sealed, "restoring": decide.RestoringRecord("t1")} {
		if got := FoundingID(c, r); got != 0 {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
