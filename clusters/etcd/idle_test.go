package etcd_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLearnerStartsWithoutWrites checks that a member that has received a snapshot of more than 5,000 entries starts to
// respond even if no application writes to the cluster.
func TestLearnerStartsWithoutWrites(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := newServers(t, binary, nil)
		s.startIn(0, filepath.Join(t.TempDir(), pod(0)), "--initial-cluster="+pod(0)+"="+s.peerURL(0),
			"--snapshot-count=100") // so that the log does not reach back to the first entry
		s.writeEntries(0, 7000)
		clients := newClients(t)
		intime(t, "add a learner", func() error {
			_, err := clients.AddLearner(t.Context(), s.cluster(1), s.peerURL(1))
			return err
		})
		s.start(1, "existing", fmt.Sprintf("%s=%s,%s=%s", pod(0), s.peerURL(0), pod(1), s.peerURL(1)))
		responds := func(m decide.Member) bool { return m.Learner && m.Answers }
		for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
			m := clients.Observe(t.Context(), s.cluster(2)).Membership
			if slices.ContainsFunc(m.Members, responds) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the learner does not respond: %+v", m)
			}
		}
	})
}

// writeEntries appends at least n entries to the Raft log.
func (s *servers) writeEntries(i, n int) {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + s.address(i, 2379)}, DialTimeout: patience})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	const writers = 50
	var writing sync.WaitGroup
	failed := make(chan error, writers)
	for range writers {
		writing.Go(func() {
			for range n / writers {
				if _, err := client.Put(s.t.Context(), "a", "b"); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	writing.Wait()
	select {
	case err := <-failed:
		s.t.Fatal(err)
	default:
	}
}
