package etcd_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/reconcile/decide"
)

// TestDisagreeingMemberIsReported makes one member return a different list, through a proxy because etcd itself cannot
// be made to do so.
func TestDisagreeingMemberIsReported(t *testing.T) {
	t.Parallel()
	s := form(t, binaries(t)[0], nil, 3)
	clients := newClients(t)
	members := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3)).Membership.Members
	i := slices.IndexFunc(members, func(m decide.Member) bool { return !m.Leader })
	follower, other := members[i], members[(i+1)%3]
	for _, test := range []struct {
		want   string
		change func(list *etcdserverpb.MemberListResponse)
		late   bool // its list is right once it has applied everything
	}{
		{want: "lists " + other.Name + " as a learner", change: func(l *etcdserverpb.MemberListResponse) { entry(l, other.ID).IsLearner = true }},
		{want: "lists " + other.Name + " at http://old:2380", change: func(l *etcdserverpb.MemberListResponse) { entry(l, other.ID).PeerURLs = []string{"http://old:2380"} }},
		{want: "does not list " + other.Name + "; lists f00d, which has been removed", change: func(l *etcdserverpb.MemberListResponse) { entry(l, other.ID).ID = 0xf00d }},
		{want: "", change: func(l *etcdserverpb.MemberListResponse) { slices.Reverse(l.Members) }},
		{want: "", change: func(l *etcdserverpb.MemberListResponse) { l.Members = l.Members[1:] }, late: true},
	} {
		var asked atomic.Int32
		cluster := s.proxied(t, 3, func(c call) ([]byte, error) {
			answer, err := c.passOn()
			if c.method != "MemberList" || c.pod != follower.Name || err != nil {
				return answer, err
			}
			if asked.Add(1) > 1 && test.late {
				return answer, nil
			}
			list := &etcdserverpb.MemberListResponse{}
			if err := proto.Unmarshal(answer, list); err != nil {
				return nil, err
			}
			test.change(list)
			return proto.Marshal(list)
		})
		answer := newClients(t).Observe(t.Context(), cluster)
		if !allAnswer(3)(answer.Membership) {
			t.Fatalf("%q: %s", test.want, print(answer))
		}
		for _, m := range answer.Membership.Members {
			if want := map[string]string{follower.Name: test.want}[m.Name]; m.Disagrees != want {
				t.Errorf("%s disagrees %q, want %q", m.Name, m.Disagrees, want)
			}
		}
	}
}

func entry(list *etcdserverpb.MemberListResponse, id decide.ID) *etcdserverpb.Member {
	return list.Members[slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.ID == uint64(id) })]
}

// TestVoterCallingItselfLearnerDisagrees makes a voter consider itself a learner, so that it responds only to Status.
func TestVoterCallingItselfLearnerDisagrees(t *testing.T) {
	t.Parallel()
	s := form(t, binaries(t)[0], nil, 3)
	clients := newClients(t)
	members := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3)).Membership.Members
	follower := members[slices.IndexFunc(members, func(m decide.Member) bool { return !m.Leader })]
	for want, applied := range map[string]uint64{"lists itself as a learner": math.MaxUint64, "": 1} { // 1: behind
		cluster := s.proxied(t, 3, func(c call) ([]byte, error) {
			answer, err := c.passOn()
			if c.method != "Status" || c.pod != follower.Name || err != nil {
				return answer, err
			}
			status := &etcdserverpb.StatusResponse{}
			if err := proto.Unmarshal(answer, status); err != nil {
				return nil, err
			}
			status.IsLearner, status.RaftAppliedIndex = true, min(applied, status.RaftAppliedIndex)
			return proto.Marshal(status)
		})
		if applied > 1 {
			eventually(t, newClients(t), cluster, "a member that "+want, func(m decide.Membership) bool { return byName(t, m, follower.Name).Disagrees == want })
			continue
		}
		if m := byName(t, newClients(t).Observe(t.Context(), cluster).Membership, follower.Name); m.Disagrees != want || m.Learner {
			t.Errorf("a member that is behind: %+v", m)
		}
	}
}
