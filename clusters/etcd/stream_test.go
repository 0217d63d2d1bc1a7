package etcd_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/reconcile/decide"
)

// TestStalledSnapshotFails checks that reading a snapshot fails if its member stops sending data, or sends only empty
// messages, as etcd does if it cannot read its database.
func TestStalledSnapshotFails(t *testing.T) {
	for what, then := range map[string]func(q question, send func(*etcdserverpb.SnapshotResponse) error) error{
		"silence": func(q question, _ func(*etcdserverpb.SnapshotResponse) error) error {
			<-q.ctx.Done()
			return q.ctx.Err()
		},
		"empty messages": func(_ question, send func(*etcdserverpb.SnapshotResponse) error) error {
			for {
				if err := send(&etcdserverpb.SnapshotResponse{RemainingBytes: 7}); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			s.say(func(question) proto.Message { return nil })
			s.snapshot = func(q question, send func(*etcdserverpb.SnapshotResponse) error) error {
				if err := send(&etcdserverpb.SnapshotResponse{RemainingBytes: 7, Blob: []byte("x")}); err != nil {
					return err
				}
				return then(q, send)
			}
			clients := newClients(t)
			clients.Stall = 200 * time.Millisecond
			received, err := clients.Snapshot(t.Context(), s.cluster())
			if err != nil {
				t.Fatal(err)
			}
			defer received.Body.Close()
			text, err := io.ReadAll(received.Body)
			if err == nil || err.Error() != "read the snapshot of a-1: it did not send data for 200ms" || string(text) != "x" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestTruncatedSnapshotFails checks that reading a snapshot fails, and leaves no file, if the stream ends before all
// announced bytes have arrived or the member loses its leader.
func TestTruncatedSnapshotFails(t *testing.T) {
	for want, end := range map[string]error{"7 bytes are missing: unexpected EOF": nil, "no leader": rpctypes.ErrGRPCNoLeader} {
		s := newStrangers(t, 3)
		s.say(func(question) proto.Message { return nil })
		s.snapshot = func(_ question, send func(*etcdserverpb.SnapshotResponse) error) error {
			if err := send(&etcdserverpb.SnapshotResponse{RemainingBytes: 7, Blob: []byte("x")}); err != nil {
				return err
			}
			return end
		}
		o := order(t)
		taken, err := backup.Take(t.Context(), newClients(t).Source(s.cluster()), o)
		if err == nil || !strings.Contains(err.Error(), "the snapshot of a-1: ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("want %q: %+v, %v", want, taken, err)
		}
		if left, err := os.ReadDir(o.Spool); err != nil || len(left) > 0 {
			t.Errorf("%v %v", left, err)
		}
	}
}

// TestSourceWithoutLeaderIsSkipped checks that a member is skipped if it has lost its leader by the time it is asked.
func TestSourceWithoutLeaderIsSkipped(t *testing.T) {
	s := newStrangers(t, 3)
	s.snapshot = func(question, func(*etcdserverpb.SnapshotResponse) error) error { return nil }
	led, asked := 2, atomic.Int32{} // each member lists the members once
	answer := func(q question) ([]byte, error) {
		if q.method == "MemberList" && asked.Add(1) > 3 && q.ordinal != led {
			return nil, rpctypes.ErrGRPCNoLeader
		}
		return proto.Marshal(honest(q, 3))
	}
	s.answer.Store(&answer)
	clients := newClients(t)
	received, err := clients.Snapshot(t.Context(), s.cluster())
	if err != nil || received.Member != pod(2) {
		t.Fatalf("%+v, %v", received, err)
	}
	received.Body.Close()
	led = -1
	asked.Store(0)
	const nobody = "request a snapshot: a-1: no leader; a-2: no leader; a-0: no leader"
	if received, err := clients.Snapshot(t.Context(), s.cluster()); err == nil || err.Error() != nobody {
		t.Errorf("%+v, %v", received, err)
	}
}

// TestSourceIsSmallestFollower checks that the source is the follower with the smallest database, and never a member
// whose data differs according to etcd.
func TestSourceIsSmallestFollower(t *testing.T) {
	for _, c := range []struct {
		what     string
		sizes    [3]int64 // the first one leads
		learners []int
		corrupt  []int
		want     string
	}{
		{"smaller follower is preferred", [3]int64{1, 9, 8}, nil, nil, pod(2)},
		{"first of equally large followers", [3]int64{1, 8, 8}, nil, nil, pod(1)},
		{"learner is not used", [3]int64{1, 9, 8}, []int{2}, nil, pod(1)},
		{"member with different data is not used", [3]int64{1, 9, 8}, nil, []int{2}, pod(1)},
		{"leader is the only possible source", [3]int64{9, 8, 7}, []int{1}, []int{2}, pod(0)},
		{"no possible source", [3]int64{9, 8, 7}, nil, []int{0, 1, 2}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStrangers(t, 3)
			s.snapshot = func(question, func(*etcdserverpb.SnapshotResponse) error) error { return nil }
			s.say(func(q question) proto.Message {
				switch q.method {
				case "Status":
					return status(q, func(s *etcdserverpb.StatusResponse) {
						s.DbSize, s.IsLearner = c.sizes[q.ordinal], slices.Contains(c.learners, q.ordinal)
						for _, i := range c.corrupt {
							s.Errors = append(s.Errors, fmt.Sprintf("memberID:%d alarm:CORRUPT", i+1))
						}
					})
				case "MemberList":
					return list(q, func(l *etcdserverpb.MemberListResponse) {
						for _, i := range c.learners {
							l.Members[i].IsLearner = true
						}
					})
				}
				return nil
			})
			received, err := newClients(t).Snapshot(t.Context(), s.cluster())
			if (err != nil) != (c.want == "") || err == nil && received.Member != c.want {
				t.Fatalf("%+v, %v", received, err)
			}
			if err == nil {
				received.Body.Close()
			}
		})
	}
}

// TestLearnerDoesNotAffectBackup checks that a learner does not affect a backup, and is not a member after a restore.
func TestLearnerDoesNotAffectBackup(t *testing.T) {
	found := binaries(t)
	s := form(t, found[len(found)-1], nil, 1)
	clients := newClients(t)
	intime(t, "add a learner", func() error {
		_, err := clients.AddLearner(t.Context(), s.cluster(1), s.peerURL(1))
		return err
	})
	s.start(1, "existing", fmt.Sprintf("%s=%s,%s=%s", pod(0), s.peerURL(0), pod(1), s.peerURL(1)))
	eventually(t, clients, s.cluster(2), "a voter and a learner", allAnswer(2))
	taken, err := backup.Take(t.Context(), clients.Source(s.cluster(2)), order(t))
	if err != nil || taken.Manifest.Member != pod(0) || taken.Manifest.Snapshot.Unproven != "" || !slices.Equal(taken.Manifest.Snapshot.ProvenBy, []string{pod(0)}) {
		t.Fatalf("%+v, %v", taken.Manifest, err)
	}
	requireDrill(t, found[len(found)-1], taken)
	restored := newServers(t, found[len(found)-1], nil)
	restored.restore(taken.File, 0)
	answer := eventually(t, newClients(t), restored.cluster(1), "the restored member", allAnswer(1))
	if members := answer.Membership.Members; len(members) != 1 || members[0].Learner {
		t.Errorf("%+v", members)
	}
}

// TestSnapshotAfterLeaderLossIsCompleteOrFails checks that a member that loses its leader while it sends its snapshot
// either sends all of it or returns an error. etcd checks for a leader only when the request arrives.
func TestSnapshotAfterLeaderLossIsCompleteOrFails(t *testing.T) {
	found := binaries(t)
	s := form(t, found[len(found)-1], nil, 3)
	clients := newClients(t)
	eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	kv := etcdserverpb.NewKVClient(s.raw(t, 0))
	for i := range 12 { // more than the connection buffers
		if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: fmt.Append(nil, i), Value: make([]byte, 1<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	received, err := clients.Snapshot(t.Context(), s.cluster(3))
	if err != nil {
		t.Fatal(err)
	}
	defer received.Body.Close()
	trailer := snapshot.NewTrailer()
	if _, err := io.CopyN(trailer, received.Body, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if pod(i) != received.Member {
			s.freeze(pod(i))
			defer s.thaw(pod(i))
		}
	}
	observer := newClients(t)
	eventually(t, observer, s.cluster(3), "a member without a leader", func(m decide.Membership) bool {
		return strings.Contains(m.Why, received.Member+": no leader")
	})
	if _, err := io.Copy(trailer, received.Body); err == nil {
		err = trailer.Check()
		if err != nil || trailer.Size() < received.Size {
			t.Errorf("%d bytes of %d, %v", trailer.Size(), received.Size, err)
		}
	} else {
		t.Log(err)
	}
}
