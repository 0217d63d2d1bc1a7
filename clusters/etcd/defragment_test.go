package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// TestDefragment fills the database of a real cluster, deletes the data, and checks that each defragmentation shrinks
// the database file of one member.
func TestDefragment(t *testing.T) {
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
		kv, revision := etcdserverpb.NewKVClient(s.raw(t, 0)), int64(0)
		for n := range 20 {
			put := &etcdserverpb.PutRequest{Key: fmt.Append(nil, n), Value: bytes.Repeat([]byte{1}, 1<<20)}
			if _, err := kv.Put(t.Context(), put); err != nil {
				t.Fatal(err)
			}
		}
		deleted, err := kv.DeleteRange(t.Context(), &etcdserverpb.DeleteRangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
		if err != nil {
			t.Fatal(err)
		}
		revision = deleted.Header.Revision
		if _, err := kv.Compact(t.Context(), &etcdserverpb.CompactionRequest{Revision: revision, Physical: true}); err != nil {
			t.Fatal(err)
		}
		answer := eventually(t, clients, s.cluster(3), "unused space", func(m decide.Membership) bool {
			// A member frees pages when it commits its next change.
			if _, err := kv.Put(t.Context(), &etcdserverpb.PutRequest{Key: []byte("k")}); err != nil {
				t.Fatal(err)
			}
			for _, member := range m.Members {
				if !member.Answers || member.DBSizeInUse > member.DBSize/2 {
					return false
				}
			}
			return m.Known
		})
		for _, m := range answer.Membership.Members {
			begun := false
			done, err := clients.Defragment(t.Context(), s.cluster(3), m.ID, func() error { begun = true; return nil })
			if m.Leader {
				if notYet := (etcd.NotYet{}); begun || !errors.As(err, &notYet) {
					t.Errorf("the leader: begun %t, %v", begun, err)
				}
				continue
			}
			if !begun || err != nil || done.Before < 20<<20 || done.After > done.Before/2 || done.Took <= 0 {
				t.Errorf("%s: %+v, %v", m.Name, done, err)
			}
		}
		_, err = clients.Defragment(t.Context(), s.cluster(3), 7, func() error { return nil })
		if notYet := (etcd.NotYet{}); !errors.As(err, &notYet) {
			t.Errorf("an unlisted member: %v", err)
		}
	})
}
