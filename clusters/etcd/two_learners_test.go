package etcd_test

import (
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRecoverAfterJoiningTwoLearners recovers each member of a cluster in which two members joined at the same time.
// The log adds two learners before it promotes the first. An etcd that allows only one learner rejects the second. It
// then panics when it has to remove the second from the new cluster, and never responds.
func TestRecoverAfterJoiningTwoLearners(t *testing.T) {
	withEach(t, binaries(t), func(t *testing.T, binary string) {
		s := newServers(t, binary, nil)
		program, err := etcdprocess.Find(t.Context(), binary)
		if err != nil {
			t.Fatal(err)
		}
		if !program.Version.AtLeast(etcdversion.Must("3.6.0")) {
			t.Skip("it allows one learner")
		}
		start := func(i int, state, initial string) {
			s.startIn(i, t.TempDir(), "--max-learners=2", "--initial-cluster="+initial, "--initial-cluster-state="+state)
		}
		initial := pod(0) + "=" + s.peerURL(0)
		start(0, "new", initial)
		clients := newClients(t)
		learners := s.addLearners(t, 1, 2)
		for i := range learners {
			initial += fmt.Sprintf(",%s=%s", pod(i+1), s.peerURL(i+1))
		}
		start(1, "existing", initial)
		start(2, "existing", initial)
		for _, id := range learners {
			intime(t, "promote", func() error { return clients.PromoteLearner(t.Context(), s.cluster(3), id) })
		}
		eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		kv := etcdserverpb.NewKVClient(s.raw(t, 2))
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("acknowledged")}); err != nil {
			t.Fatal(err)
		}
		disk := etcdserverpb.NewMaintenanceClient(s.raw(t, 2)) // makes the member write to disk that it is a voter
		if _, err := disk.Defragment(t.Context(), &etcdserverpb.DefragmentRequest{}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			s.kill(pod(i))
		}
		if held := s.recovered(t, 2); !held["acknowledged"] {
			t.Errorf("it holds %v", held)
		}
	})
}

// addLearners adds learners with the addresses of the given members, before any of them starts.
func (s *servers) addLearners(t *testing.T, members ...int) (added []decide.ID) {
	t.Helper()
	clients := newClients(t)
	for _, i := range members {
		intime(t, "add a learner", func() error {
			id, err := clients.AddLearner(t.Context(), s.cluster(1), s.peerURL(i))
			if err == nil {
				added = append(added, id)
			}
			return err
		})
	}
	return added
}
