package clusters

import (
	"math"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestEndpointsDoNotOutvoteReplicas checks that members that only endpoints know do not confirm a list without the replicas.
func TestEndpointsDoNotOutvoteReplicas(t *testing.T) {
	l := newHolding(t)
	l.etcd.members = l.etcd.members[:4]
	l.record.Guests = l.record.Guests[:1]
	l.adopts.Release = []decide.ID{firstGuest + 1, firstGuest + 2}
	h := &fakeEtcd{t: t, subnet: l.etcd.subnet, running: map[int]*fakeMember{}}
	h.members = append(h.members, l.etcd.members[0], l.etcd.members[1], l.etcd.members[3])
	l.adopts.Endpoints = nil
	for n := range 5 {
		id := uint64(firstGuest + 0x100*n)
		if n > 0 {
			h.members = append(h.members, &listedMember{ID: id, Name: "x", PeerURLs: []string{"http://x:2380"}, ClientURLs: []string{"http://x"}})
		}
		h.serve(30+n, id, h.address(30+n))
		l.adopts.Endpoints = append(l.adopts.Endpoints, h.endpoint(30+n))
	}
	c := l.seen(l.old)
	if next := decide.RequiredRecord(c.state, "t"); len(next.Members) != 3 || len(next.Removed) > 0 {
		t.Errorf("%s\n3 healthy replicas agree, but the next record lists %d members and removed %+v", decide.Decide(c.state), len(next.Members), next.Removed)
	}
}

// TestReplicasAreNotTakenForGuests checks that a replica in the list of guests of an edited record keeps its volume.
func TestReplicasAreNotTakenForGuests(t *testing.T) {
	l := newLife(t)
	l.adopts.PeerURL = peerOf(0)
	l.record.Adopted, l.record.Guests = fakeClusterID, []decide.ID{3}
	for range 3 {
		c := l.seen(l.old)
		d := decide.Decide(c.state)
		if a, is := d.Action.(decide.DeleteVolume); is {
			t.Fatalf("no spec.adopt, 3 healthy voters: %s %+v", d, a)
		}
		l.record = decide.RequiredRecord(c.state, "t")
	}
}

// TestVolumeOfListedReplicaIsKept checks the same when the volume is about to be deleted.
func TestVolumeOfListedReplicaIsKept(t *testing.T) {
	l := newLife(t)
	l.adopts.PeerURL = peerOf(0)
	l.record.Adopted, l.record.Guests = fakeClusterID, []decide.ID{3}
	l.record = decide.RequiredRecord(l.seen(l.old).state, "t")
	c := l.seen(l.old)
	c.live.kube = clientOf(t, l.server())
	if err := c.memberGone(t.Context(), 2); err == nil {
		t.Error("a-2 votes and responds, but its volume may be deleted")
	}
}

// TestPeerURLsAddNoMembers checks that a peer URL that would add members to a joining file is not accepted.
func TestPeerURLsAddNoMembers(t *testing.T) {
	l := newAdoption(t)
	l.etcd.members[0].PeerURLs = []string{"http://old-0:2380,a-0=http://evil.example.com:2380"}
	c := l.seen(l.old)
	d := decide.Decide(c.state)
	peers := c.peers(c.state.Source)
	for name, urls := range peers {
		for _, u := range urls {
			if strings.ContainsAny(u, ",= \n") && d.Verdict == decide.Act {
				t.Errorf("%s, initial-cluster gets %s=%s", d.Rule, name, u)
			}
		}
	}
}

// TestHugeDatabaseIsNotAdopted checks the comparison of the database with the quota.
func TestHugeDatabaseIsNotAdopted(t *testing.T) {
	l := newAdoption(t)
	c := l.seen(l.old)
	c.state.Declared.Quota = 1 << 30
	for _, size := range []int64{4 << 30, math.MaxInt64} {
		for i := range c.state.Source.Members {
			c.state.Source.Members[i].DBSize = size
		}
		if d := decide.Decide(c.state); d.Verdict == decide.Act {
			t.Errorf("size %d: %s", size, d)
		}
	}
}
