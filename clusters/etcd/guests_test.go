package etcd_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// adopting returns a cluster of three replicas, with IDs 1 to 3, and as many guests as there are more members. The guests
// have the names of replicas, and are reached through endpoints. Further endpoints lead to the given members.
func (s *strangers) adopting(more ...int) etcd.Cluster {
	c := s.cluster()
	c.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
		address, endpoint := s.addresses[pod]
		if !endpoint {
			address, _, _ = strings.Cut(pod, "/")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	for i := 3; i < len(s.addresses); i++ {
		address := s.addresses[pod(i)]
		c.Pods[i] = etcd.Pod{Name: address, UID: address, Host: "127.0.0.1", Endpoint: true}
		c.Guests = append(c.Guests, decide.ID(i+1))
	}
	for i, to := range more {
		c.Pods = append(c.Pods, etcd.Pod{Name: fmt.Sprintf("%s/%d", s.addresses[pod(to)], i), Host: "127.0.0.1", Endpoint: true})
	}
	c.Adopted, c.Replicas = strangerClusterID, []decide.ID{1, 2, 3}
	c.Foreign = func(m decide.Member) bool { return m.ID > 3 }
	return c
}

// guests makes the members with IDs from 4 have the names of replicas.
func guests(l *etcdserverpb.MemberListResponse) {
	for _, m := range l.Members[3:] {
		m.Name = pod(int(m.ID) - 4)
		m.PeerURLs = append(m.PeerURLs, "http://second:2380")
	}
}

// sayGuests makes all members return the list with guests. If change returns a response, it is returned instead.
func (s *strangers) sayGuests(change func(question) ([]byte, error)) {
	answer := func(q question) ([]byte, error) {
		if text, err := change(q); text != nil || err != nil {
			return text, err
		}
		message := honest(q, len(s.addresses))
		if l, is := message.(*etcdserverpb.MemberListResponse); is {
			guests(l)
		}
		return proto.Marshal(message)
	}
	s.answer.Store(&answer)
}

func nothing(question) ([]byte, error) { return nil, nil }

func silent(ordinals ...int) func(question) ([]byte, error) {
	return func(q question) ([]byte, error) {
		if slices.Contains(ordinals, q.ordinal) {
			return nil, fmt.Errorf("not responding")
		}
		return nil, nil
	}
}

// TestGuestsAreObservedThroughEndpoints checks that a guest is identified by its response, even if its name is a
// replica's name, and that all its peer URLs are known.
func TestGuestsAreObservedThroughEndpoints(t *testing.T) {
	s := newStrangers(t, 6)
	s.sayGuests(silent(0, 4))
	got := newClients(t).Observe(t.Context(), s.adopting())
	if !got.Membership.Known || len(got.Membership.Members) != 6 {
		t.Fatalf("got %s", print(got))
	}
	for i, m := range got.Membership.Members {
		if m.Answers != (i != 0 && i != 4) || (len(m.MorePeerURLs) == 1) != (i >= 3) {
			t.Errorf("got %+v", m)
		}
	}
	want := "no responding endpoint in spec.adopt leads to it; " + s.addresses[pod(4)] + ": not responding"
	if why := got.Membership.Members[4].Why; why != want {
		t.Errorf("got %q, want %q", why, want)
	}
	if why := got.Membership.Members[0].Why; why != "not responding" {
		t.Errorf("a-0: %q", why)
	}
	unreachable := s.adopting()
	unreachable.Pods = unreachable.Pods[:5]
	s.sayGuests(nothing)
	for _, m := range newClients(t).Observe(t.Context(), unreachable).Membership.Members[5:] {
		if m.Answers || m.Why != "no responding endpoint in spec.adopt leads to it" {
			t.Errorf("got %+v", m)
		}
	}
}

// TestListRequiresRecordedGuests checks that a member list without the recorded guests does not count while these
// guests are silent, but counts if git releases them.
func TestListRequiresRecordedGuests(t *testing.T) {
	for what, test := range map[string]struct {
		silent   []int
		released int
		want     bool
	}{
		"guests are not responding":              {[]int{3, 4, 5}, 0, false},
		"two of three guests are not responding": {[]int{4, 5}, 0, false},
		"guests are released":                    {[]int{3, 4, 5}, 3, true},
		"one of three is released":               {[]int{3, 4, 5}, 1, true},
		"a replica is not responding either":     {[]int{2, 3, 4, 5}, 1, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newStrangers(t, 6)
			s.sayGuests(func(q question) ([]byte, error) {
				if _, err := silent(test.silent...)(q); err != nil || q.method != "MemberList" {
					return nil, err
				}
				return proto.Marshal(list(q, func(l *etcdserverpb.MemberListResponse) { l.Members = listed(3) }))
			})
			c := s.adopting()
			c.Voters, c.Guests = []string{pod(0), pod(1), pod(2)}, c.Guests[test.released:]
			m := newClients(t).Observe(t.Context(), c).Membership
			if m.Known != test.want || !m.Known && !m.Unrecorded {
				t.Errorf("got %+v", m)
			}
			if !m.Known && !strings.Contains(m.Why, "guest ") {
				t.Errorf("got %s", m.Why)
			}
		})
	}
}

// TestEndpointsAreNotTrusted checks that an endpoint that leads to a different cluster, to a replica, or to the same
// member as another endpoint, does not affect the observed membership or prevent changes.
func TestEndpointsAreNotTrusted(t *testing.T) {
	t.Run("to a known member", func(t *testing.T) {
		s := newStrangers(t, 6)
		s.sayGuests(nothing)
		clients, c := newClients(t), s.adopting(0, 3, 3, 4)
		if got := clients.Observe(t.Context(), c); !allAnswer(6)(got.Membership) {
			t.Errorf("got %s", print(got))
		}
		if err := clients.RemoveMember(t.Context(), c, 6); err != nil {
			t.Error(err)
		}
	})
	t.Run("to a different cluster", func(t *testing.T) {
		s := newStrangers(t, 6)
		s.sayGuests(func(q question) ([]byte, error) {
			if q.ordinal != 5 || q.method != "Status" {
				return nil, nil
			}
			return proto.Marshal(status(q, func(r *etcdserverpb.StatusResponse) { r.Header.ClusterId, r.RaftTerm = 0xbad, 99 }))
		})
		clients, c := newClients(t), s.adopting()
		m := clients.Observe(t.Context(), c).Membership
		if !m.Known || m.ClusterID != strangerClusterID || m.Members[5].Answers || !strings.Contains(m.Members[5].Why, "it belongs to cluster bad, not c1") {
			t.Errorf("got %+v", m)
		}
		if err := clients.RemoveMember(t.Context(), c, 6); err != nil {
			t.Error(err)
		}
	})
	t.Run("claims to be an unresponsive replica", func(t *testing.T) {
		s := newStrangers(t, 6)
		s.sayGuests(func(q question) ([]byte, error) {
			if _, err := silent(0)(q); err != nil || q.ordinal != 5 {
				return nil, err
			}
			return proto.Marshal(honest(question{method: q.method}, 6))
		})
		m := newClients(t).Observe(t.Context(), s.adopting()).Membership
		if !m.Known || m.Members[0].Answers || m.Members[5].Answers || !strings.Contains(m.Members[5].Why, "it leads to a replica, 1") {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("several endpoints return the same lie", func(t *testing.T) {
		s := newStrangers(t, 6)
		s.sayGuests(func(q question) ([]byte, error) {
			if q.ordinal != 5 || q.method != "MemberList" {
				return nil, nil
			}
			return proto.Marshal(list(q, func(l *etcdserverpb.MemberListResponse) { l.Members = l.Members[:1] }))
		})
		if m := newClients(t).Observe(t.Context(), s.adopting(5, 5, 5, 5, 5, 5)).Membership; !m.Known || len(m.Members) != 6 {
			t.Errorf("got %+v", m)
		}
	})
}

// TestManyPeerURLsAreRejected checks that the number of a member's peer URLs is limited.
func TestManyPeerURLsAreRejected(t *testing.T) {
	s := newStrangers(t, 1)
	s.say(lists(func(l *etcdserverpb.MemberListResponse) {
		l.Members[0].PeerURLs = slices.Repeat([]string{"http://x:2380"}, 17)
	}))
	if m := newClients(t).Observe(t.Context(), s.cluster()).Membership; m.Known || !strings.Contains(m.Why, "17 peer URLs") {
		t.Errorf("got %+v", m)
	}
}

// TestReplicaReplacesRealGuests checks that a replica joins another tool's cluster as a learner and becomes its only
// member.
func TestReplicaReplacesRealGuests(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		const own = 3
		s := form(t, binary, nil, own)
		clients := newClients(t)
		c := etcd.Cluster{Namespace: namespace, Name: name, CompareData: true}
		c.Dial = func(ctx context.Context, pod string) (net.Conn, error) {
			if strings.Contains(pod, ":") {
				return (&net.Dialer{}).DialContext(ctx, "tcp", pod)
			}
			return s.dial(ctx, pod)
		}
		initial := pod(own) + "=" + s.peerURL(own)
		for i := range own {
			c.Pods = append(c.Pods, etcd.Pod{Name: s.address(i, 2379), UID: s.address(i, 2379), Host: s.subnet, Endpoint: true})
			initial += fmt.Sprintf(",guest-%d=%s", i, s.peerURL(i))
		}
		observe := func(voters int) (m decide.Membership) {
			intime(t, fmt.Sprint("observe ", voters, " voters"), func() error {
				if m = clients.Observe(t.Context(), c).Membership; !m.Known || len(m.Voters()) != voters || decide.Answering(m.Members) != len(m.Members) {
					return etcd.NotYet{Err: fmt.Errorf("%+v", m)}
				}
				return nil
			})
			return m
		}
		for _, m := range observe(own).Members {
			c.Guests = append(c.Guests, m.ID)
			if !m.Hash.Known() {
				t.Errorf("%s has no hash: %s", m.Name, m.HashWhy)
			}
		}
		guests := c.Guests
		c.Foreign = func(m decide.Member) bool { return slices.Contains(guests, m.ID) }
		var id decide.ID
		intime(t, "add a learner", func() (err error) {
			id, err = clients.AddLearner(t.Context(), c, s.peerURL(own))
			return err
		})
		s.start(own, "existing", initial)
		c.Pods = append(c.Pods, etcd.Pod{Name: pod(own), UID: "own"})
		intime(t, "promote it", func() error { return clients.PromoteLearner(t.Context(), c, id) })
		c.Voters, c.Replicas, c.Adopted = []string{pod(own)}, []decide.ID{id}, observe(own+1).ClusterID
		intime(t, "move leadership", func() error {
			for _, m := range observe(own + 1).Members {
				if m.Leader && m.ID != id {
					return clients.MoveLeader(t.Context(), c, m.ID, id)
				}
			}
			return nil
		})
		for i, guest := range guests {
			c.Guests = guests[i+1:]
			intime(t, "remove a guest", func() error { return clients.RemoveMember(t.Context(), c, guest) })
			observe(own - i)
		}
		if m := observe(1).Members[0]; m.ID != id || !m.Leader || m.Name != pod(own) {
			t.Errorf("got %+v", m)
		}
	})
}

// TestEndpointsDoNotOutvoteReplicas checks that endpoints that lead to unrecorded members do not confirm a list.
func TestEndpointsDoNotOutvoteReplicas(t *testing.T) {
	for _, fakes := range []int{3, 4, 5, 6} {
		t.Run(fmt.Sprint(fakes), func(t *testing.T) {
			s := newStrangers(t, 3+fakes)
			s.sayGuests(func(q question) ([]byte, error) {
				n := 4 // replicas tell the truth: 1-3 and guest 4
				if q.method == "MemberList" {
					m := honest(q, 3+fakes).(*etcdserverpb.MemberListResponse)
					m.Members = m.Members[:n]
					if q.ordinal >= 3 {
						m = honest(q, 3+fakes).(*etcdserverpb.MemberListResponse)
						m.Members = m.Members[3:]
					}
					return proto.Marshal(m)
				}
				if q.method == "Status" && q.ordinal >= 3 {
					m := honest(q, 3+fakes).(*etcdserverpb.StatusResponse)
					m.RaftTerm, m.Leader = 99, 4
					return proto.Marshal(m)
				}
				return nil, nil
			})
			c := s.adopting()
			c.Voters, c.Guests, c.Known = []string{pod(0), pod(1), pod(2)}, []decide.ID{4}, []decide.ID{4}
			m := newClients(t).Observe(t.Context(), c).Membership
			if m.Known && m.Members[0].ID != 1 {
				t.Errorf("%d hostile endpoints, 1 recorded guest: Known, without any of the 3 replicas (all answer)", fakes)
			}
		})
	}
}
