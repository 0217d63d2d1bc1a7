package etcd_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// lies are well-formed member lists that a single member may return instead of the list of three members.
var lies = map[string]func(*etcdserverpb.MemberListResponse){
	"omits a member":       func(l *etcdserverpb.MemberListResponse) { l.Members = l.Members[:2] },
	"lists only itself":    func(l *etcdserverpb.MemberListResponse) { l.Members = l.Members[:1] },
	"adds a voter":         func(l *etcdserverpb.MemberListResponse) { l.Members = listed(4) },
	"replaces a member":    func(l *etcdserverpb.MemberListResponse) { l.Members[2].ID = 0xf00d },
	"lists a learner":      func(l *etcdserverpb.MemberListResponse) { l.Members[2].IsLearner = true },
	"moves a member":       func(l *etcdserverpb.MemberListResponse) { l.Members[2].PeerURLs = []string{"http://x:2380"} },
	"lists only learners":  func(l *etcdserverpb.MemberListResponse) { l.Members = learners(3) },
	"one voter, itself":    func(l *etcdserverpb.MemberListResponse) { l.Members = append(listed(1), learners(3)[1:]...) },
	"lists other members":  func(l *etcdserverpb.MemberListResponse) { l.Members = append(listed(1), others(2)...) },
	"lists unknown voters": func(l *etcdserverpb.MemberListResponse) { l.Members = others(3) },
}

func learners(size int) []*etcdserverpb.Member {
	members := listed(size)
	for _, m := range members {
		m.IsLearner = true
	}
	return members
}

func others(size int) []*etcdserverpb.Member {
	members := listed(size)
	for _, m := range members {
		m.ID += 0xf000
	}
	return members
}

// lying makes a-0 return a false list and claim to lead at the newest term. The pods in silent do not respond.
func lying(lie func(*etcdserverpb.MemberListResponse), silent ...int) func(question) ([]byte, error) {
	return func(q question) ([]byte, error) {
		if slices.Contains(silent, q.ordinal) {
			return nil, fmt.Errorf("not responding")
		}
		answer := honest(q, 3)
		switch message := answer.(type) {
		case *etcdserverpb.StatusResponse:
			if q.ordinal == 0 {
				message.RaftTerm, message.RaftIndex = 99, 1<<40
			}
		case *etcdserverpb.MemberListResponse:
			if q.ordinal == 0 {
				lie(message)
			}
		}
		return proto.Marshal(answer)
	}
}

// TestLyingMemberIsOutvoted checks that a single member that returns a false list cannot determine the member list,
// even if it claims to lead at the newest term.
func TestLyingMemberIsOutvoted(t *testing.T) {
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			answer := lying(lie)
			s.answer.Store(&answer)
			got := newClients(t).Observe(t.Context(), s.cluster())
			if !allAnswer(3)(got.Membership) {
				t.Fatalf("got %s", print(got))
			}
			for _, m := range got.Membership.Members {
				if m.ID > 3 || m.Learner || (m.Disagrees != "") != (m.Name == pod(0)) {
					t.Errorf("got %+v", m)
				}
			}
		})
	}
}

// TestListRequiresQuorumOfItsVoters checks that the list is unknown if a lying member and a lost member leave only one
// honest response, and that the reason names the members whose lists differ.
func TestListRequiresQuorumOfItsVoters(t *testing.T) {
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			answer := lying(lie, 2)
			s.answer.Store(&answer)
			clients := newClients(t)
			m := clients.Observe(t.Context(), s.cluster()).Membership
			if m.Known || !m.Unconfirmed || !m.Disputed || !strings.Contains(m.Why, "a-1: its member list is not confirmed: 1 of 3 voters returned it, but a-0 ") {
				t.Errorf("got %+v", m)
			}
			if _, err := clients.Snapshot(t.Context(), s.cluster()); err == nil || !strings.Contains(err.Error(), "no quorum confirms the member list: a-0: ") {
				t.Errorf("a snapshot of such a cluster: %v", err)
			}
		})
	}
}

// TestListRequiresRecordedVoters checks that a member that does not list other voters does not determine the member list
// while they are silent, and that no snapshot of it is taken. A list without recorded voters, and a list that git
// confirms, are accepted.
func TestListRequiresRecordedVoters(t *testing.T) {
	alone := map[string]bool{"lists only itself": true, "one voter, itself": true}
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			answer := lying(lie, 1, 2)
			s.answer.Store(&answer)
			clients, cluster := newClients(t), s.cluster()
			cluster.Voters = []string{pod(0), pod(1), pod(2)}
			m := clients.Observe(t.Context(), cluster).Membership
			if m.Known || !m.Unconfirmed || m.Unrecorded != alone[what] || m.Disputed {
				t.Errorf("got %+v", m)
			}
			if m.Unrecorded && m.Why != "a-0: its member list is not confirmed: a-0 returned it, but the expected voters "+
				"a-1 and a-2 did not; a-1, a-2: not responding" {
				t.Errorf("got %s", m.Why)
			}
			if _, err := clients.Snapshot(t.Context(), cluster); err == nil || !strings.Contains(err.Error(), "no quorum confirms the member list: a-0: ") {
				t.Errorf("a snapshot of such a cluster: %v", err)
			}
			for _, m := range m.Members {
				cluster.Confirmed = append(cluster.Confirmed, m.ID)
			}
			accepts := cluster
			accepts.Voters, accepts.Confirmed = nil, nil
			for _, cluster := range []etcd.Cluster{cluster, accepts} {
				if got := clients.Observe(t.Context(), cluster).Membership; got.Known != alone[what] {
					t.Errorf("with recorded voters %v and confirmed members %v: %+v", cluster.Voters, cluster.Confirmed, got)
				}
			}
		})
	}
}

// TestHonestListsAgreeWithRecord checks that a list is known although the record does not reflect the newest changes.
func TestHonestListsAgreeWithRecord(t *testing.T) {
	for what, c := range map[string]struct {
		recorded []int
		learners []int // in the list
		silent   []int
		want     bool
	}{
		"all respond":                                 {[]int{0, 1, 2}, nil, nil, true},
		"one of three is not responding":              {[]int{0, 1, 2}, nil, []int{2}, true},
		"a promotion is not recorded":                 {[]int{0, 1}, nil, []int{0}, true},
		"a removal is not recorded":                   {[]int{0, 1, 2, 3}, nil, nil, true},
		"a removal of two is not recorded":            {[]int{0, 1, 2, 3, 4}, nil, nil, true},
		"an unresponsive learner joins one voter":     {[]int{0}, []int{1, 2}, []int{1, 2}, true},
		"a member was replaced by a learner":          {[]int{0, 1}, []int{1, 2}, []int{2}, true},
		"two of three are replaced by learners":       {[]int{0, 1, 2}, []int{1, 2}, nil, true},
		"a recorded voter is an unresponsive learner": {[]int{0, 1}, []int{1, 2}, []int{1, 2}, false},
		"two were removed, another is not responding": {[]int{0, 1, 2, 3, 4}, nil, []int{2}, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			answer := func(q question) ([]byte, error) {
				learns := func(id uint64) bool { return slices.Contains(c.learners, int(id)-1) }
				if slices.Contains(c.silent, q.ordinal) {
					return nil, fmt.Errorf("not responding")
				}
				answer := honest(q, 3)
				switch message := answer.(type) {
				case *etcdserverpb.StatusResponse:
					message.IsLearner = learns(message.Header.MemberId)
				case *etcdserverpb.MemberListResponse:
					for _, m := range message.Members {
						m.IsLearner = learns(m.ID)
					}
				}
				return proto.Marshal(answer)
			}
			s.answer.Store(&answer)
			cluster := s.cluster()
			for _, i := range c.recorded {
				cluster.Voters = append(cluster.Voters, pod(i))
			}
			if m := newClients(t).Observe(t.Context(), cluster).Membership; m.Known != c.want || m.Unrecorded == c.want {
				t.Errorf("got %+v", m)
			}
		})
	}
}

// TestUnreachableVotersDoNotConfirm checks that if only one member responds, its list is not used, although the
// response shows that the cluster has quorum.
func TestUnreachableVotersDoNotConfirm(t *testing.T) {
	s := newStrangers(t, 3)
	answer := lying(func(*etcdserverpb.MemberListResponse) {}, 1, 2)
	s.answer.Store(&answer)
	got := newClients(t).Observe(t.Context(), s.cluster())
	const why = "a-0: its member list is not confirmed: 1 of 3 voters returned it; a-1, a-2: not responding"
	if m := got.Membership; m.Known || !m.Unconfirmed || m.Disputed || m.Why != why || len(m.Members) != 3 {
		t.Errorf("want %q: %s", why, print(got))
	}
}

// TestLaggingVoterConfirms checks that a voter that has not yet applied the newest change to the list confirms the list
// once it has applied the change.
func TestLaggingVoterConfirms(t *testing.T) {
	s := newStrangers(t, 3)
	var asked atomic.Int32
	s.say(func(q question) proto.Message {
		switch {
		case q.ordinal == 2 && q.method == "Status":
			return &etcdserverpb.StatusResponse{}
		case q.ordinal == 1 && q.method == "MemberList" && asked.Add(1) == 1:
			return list(q, func(l *etcdserverpb.MemberListResponse) { l.Members = l.Members[:2] })
		}
		return nil
	})
	answer := newClients(t).Observe(t.Context(), s.cluster())
	if m := answer.Membership; !m.Known || len(m.Members) != 3 || byName(t, m, pod(1)).Disagrees != "" {
		t.Errorf("got %s", print(answer))
	}
}

// TestRemovedMemberDoesNotPreventQuorum checks that the list is known even if a removed member still returns a list
// that contains itself.
func TestRemovedMemberDoesNotPreventQuorum(t *testing.T) {
	s := newStrangers(t, 3)
	s.say(to("MemberList", func(q question) proto.Message {
		return list(q, func(l *etcdserverpb.MemberListResponse) {
			if q.ordinal != 2 {
				l.Members = l.Members[:2]
			}
		})
	}))
	answer := newClients(t).Observe(t.Context(), s.cluster())
	if !allAnswer(2)(answer.Membership) || slices.ContainsFunc(answer.Membership.Members, func(m decide.Member) bool { return m.Disagrees != "" }) {
		t.Errorf("got %s", print(answer))
	}
}

// TestPretendedLeaderDoesNotWithholdChanges checks that changes go to the leader that most agreeing members name, even if
// another member claims to lead at a newer term. If only two members respond, the change is requested from both.
func TestPretendedLeaderDoesNotWithholdChanges(t *testing.T) {
	for what, c := range map[string]struct {
		silent  []int
		refuses bool // the pretended leader
		asked   string
	}{
		"pretended leader is outvoted":                 {nil, false, "a-1"},
		"one other member responds":                    {[]int{2}, false, "a-0 a-1"},
		"one other responds, pretended leader refuses": {[]int{2}, true, "a-0 a-1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			var mu sync.Mutex
			var asked []string
			lies := lying(func(*etcdserverpb.MemberListResponse) {}, c.silent...)
			answer := func(q question) ([]byte, error) {
				text, err := lies(q)
				if q.method == "Status" && err == nil && q.ordinal != 0 {
					status := honest(q, 3).(*etcdserverpb.StatusResponse)
					status.Leader = 2
					return proto.Marshal(status)
				}
				if q.method == "MemberAdd" {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, pod(q.ordinal))
					if c.refuses && q.ordinal == 0 {
						return nil, fmt.Errorf("refused")
					}
				}
				return text, err
			}
			s.answer.Store(&answer)
			if _, err := newClients(t).AddLearner(t.Context(), s.cluster(), "http://new:2380"); err != nil {
				t.Error(err)
			}
			slices.Sort(asked)
			if got := strings.Join(asked, " "); got != c.asked {
				t.Errorf("asked %q, want %q", got, c.asked)
			}
		})
	}
}

// TestVotersWithoutLeaderAreCompared checks that the lists of members that know no leader are compared, because a lying
// leader can leave the others without one. It also checks that such a leader alone cannot report a removal as done.
func TestVotersWithoutLeaderAreCompared(t *testing.T) {
	for what, lie := range lies {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 3)
			inner := lying(lie)
			answer := func(q question) ([]byte, error) {
				if q.method == "Status" && q.ordinal != 0 {
					return proto.Marshal(status(q, func(s *etcdserverpb.StatusResponse) { s.Leader = 0 }))
				}
				return inner(q)
			}
			s.answer.Store(&answer)
			c := newClients(t)
			if m := c.Observe(t.Context(), s.cluster()).Membership; m.Known {
				t.Errorf("one member alone made the list known: %+v", m)
			}
			if err := c.RemoveMember(t.Context(), s.cluster(), 3); err == nil {
				t.Error("a member that no other member follows reported the removal of a voter")
			}
		})
	}
}
