package etcd_test

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestRevisionIncludesAcknowledgedWrites checks that the revision includes all writes that any member has acknowledged,
// even if a different member is queried, and that the revision is unknown without quorum.
func TestRevisionIncludesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		want, err := clients.ClusterID(t.Context(), s.cluster(3))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 9 {
			put, err := etcdserverpb.NewKVClient(s.raw(t, i%3)).Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k")})
			if err != nil {
				t.Fatal(err)
			}
			if id, revision, err := clients.Source(s.cluster(3)).CurrentRevision(t.Context()); err != nil || id != want || revision != put.Header.Revision {
				t.Errorf("cluster %s at %d: %v, want %s at %d", id, revision, err, want, put.Header.Revision)
			}
		}
		s.freeze(pod(1))
		s.freeze(pod(2))
		if _, revision, err := clients.CurrentRevision(t.Context(), s.cluster(3)); err == nil {
			t.Errorf("revision %d without quorum", revision)
		}
		s.thaw(pod(1))
		s.thaw(pod(2))
	})
}
