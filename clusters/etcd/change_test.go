package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// TestMemberChanges makes all kinds of member changes, from a single-member cluster to a cluster that consists of a
// different member.
func TestMemberChanges(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, newCA(t, "*."+name+"."+namespace+".svc"), 1)
		clients, ctx := newClients(t), t.Context()
		answer := eventually(t, clients, s.cluster(1), "one responding member", allAnswer(1))
		first := answer.Membership.Members[0].ID

		var learner decide.ID
		twice(t, "add a learner", func() (err error) {
			before := learner
			if learner, err = clients.AddLearner(ctx, s.cluster(2), s.peerURL(1)); err == nil && before != 0 && learner != before {
				t.Errorf("the learner %s was added once more, as %s", before, learner)
			}
			return err
		})
		if id, err := clients.AddLearner(ctx, s.cluster(2), s.peerURL(0)); err != nil || id != first {
			t.Errorf("add a member that already votes: %s, %v", id, err)
		}
		_, err := clients.AddLearner(ctx, s.cluster(2), s.peerURL(2))
		checkNotYet(t, err, "add a learner at "+s.peerURL(2)+": too many learner members in cluster")
		checkNotYet(t, clients.PromoteLearner(ctx, s.cluster(2), learner),
			"promote learner "+learner.String()+": can only promote a learner member which is in sync with leader")

		s.start(1, "existing", pod(0)+"="+s.peerURL(0)+","+pod(1)+"="+s.peerURL(1))
		intime(t, "promote the learner", func() error { return clients.PromoteLearner(ctx, s.cluster(2), learner) })
		answer = eventually(t, clients, s.cluster(2), "two voters", allAnswer(2)) // a-1 may apply the promotion later
		twice(t, "promote a voter", func() error { return clients.PromoteLearner(ctx, s.cluster(2), learner) })
		if m := byName(t, answer.Membership, pod(1)); m.ID != learner || m.Learner || m.Disagrees != "" {
			t.Errorf("the promoted learner: %+v", m)
		}

		s.checkLeaderMoves(t, clients, first, learner)
		// The former learner now leads, but is not the first pod. etcd lets it remove the other member only after that
		// member has been up for several seconds.
		intime(t, "remove the first member", func() error { return clients.RemoveMember(ctx, s.cluster(2), first) })
		twice(t, "remove who is gone", func() error { return clients.RemoveMember(ctx, s.cluster(2), first) })
		s.kill(pod(0))
		answer = eventually(t, clients, s.cluster(2), "one responding member", allAnswer(1))
		if m := answer.Membership.Members[0]; m.ID != learner || !m.Leader {
			t.Errorf("remaining members: %+v", m)
		}
		checkRefused(t, clients.PromoteLearner(ctx, s.cluster(2), first), "promote learner "+first.String()+": member not found")
	})
}

func (s *servers) checkLeaderMoves(t *testing.T, clients *etcd.Clients, first, second decide.ID) {
	t.Helper()
	ctx, cluster := t.Context(), s.cluster(2)
	what := "move leadership from " + first.String() + " to abc: "
	checkRefused(t, clients.MoveLeader(ctx, cluster, first, 0xabc), what+"bad leader transferee")
	intime(t, "move leadership from a member that does not lead", func() error { return clients.MoveLeader(ctx, cluster, 0xabc, second) })
	if m := byName(t, clients.Observe(ctx, cluster).Membership, pod(0)); !m.Leader {
		t.Errorf("%s no longer leads: %+v", pod(0), m)
	}
	intime(t, "move leadership", func() error { return clients.MoveLeader(ctx, cluster, first, second) })
	twice(t, "move leadership to the leader", func() error { return clients.MoveLeader(ctx, cluster, first, second) })
	eventually(t, clients, cluster, "leadership of the second member", func(m decide.Membership) bool { return allAnswer(2)(m) && byName(t, m, pod(1)).Leader })
}

// twice makes a change twice. The second time must also succeed.
func twice(t *testing.T, what string, change func() error) {
	t.Helper()
	for range 2 {
		if err := change(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// intime makes a change as soon as etcd allows it.
func intime(t *testing.T, what string, change func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		err := change()
		if err == nil {
			return
		}
		if _, is := errors.AsType[etcd.NotYet](err); !is || time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func checkNotYet(t *testing.T, err error, want string) {
	t.Helper()
	if _, is := errors.AsType[etcd.NotYet](err); !is || err.Error() != want {
		t.Errorf("got %v (not yet: %v), want %s", err, is, want)
	}
}

func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	if _, is := errors.AsType[etcd.NotYet](err); is || err == nil || err.Error() != want {
		t.Errorf("got %v (not yet: %v), want %s", err, is, want)
	}
}

// TestChangesWithLostResponsesAreRepeatable makes changes that get no response, and then makes them again.
func TestChangesWithLostResponsesAreRepeatable(t *testing.T) {
	t.Parallel()
	s := form(t, binaries(t)[0], nil, 1)
	clients, ctx := newClients(t), t.Context()
	first := eventually(t, clients, s.cluster(1), "one responding member", allAnswer(1)).Membership.Members[0].ID

	s.checkLost(t, 1, "MemberAdd", "add a learner at "+s.peerURL(1), func(hasty *etcd.Clients, losing etcd.Cluster) error {
		_, err := hasty.AddLearner(ctx, losing, s.peerURL(1))
		return err
	})
	learner := byName(t, clients.Observe(ctx, s.cluster(1)).Membership, "").ID
	if id, err := clients.AddLearner(ctx, s.cluster(1), s.peerURL(1)); err != nil || id != learner {
		t.Errorf("added as %s, and once more as %s: %v", learner, id, err)
	}

	s.start(1, "existing", pod(0)+"="+s.peerURL(0)+","+pod(1)+"="+s.peerURL(1))
	eventually(t, clients, s.cluster(2), "two responding members", allAnswer(2))
	s.checkLost(t, 2, "MemberPromote", "promote learner "+learner.String(), func(hasty *etcd.Clients, losing etcd.Cluster) error {
		return hasty.PromoteLearner(ctx, losing, learner)
	})
	if m := byName(t, clients.Observe(ctx, s.cluster(2)).Membership, pod(1)); m.Learner {
		t.Errorf("not promoted: %+v", m)
	}
	twice(t, "promote", func() error { return clients.PromoteLearner(ctx, s.cluster(2), learner) })

	what := "move leadership from " + first.String() + " to " + learner.String()
	s.checkLost(t, 2, "MoveLeader", what, func(hasty *etcd.Clients, losing etcd.Cluster) error {
		return hasty.MoveLeader(ctx, losing, first, learner)
	})
	twice(t, "move leadership", func() error { return clients.MoveLeader(ctx, s.cluster(2), first, learner) })

	s.checkLost(t, 2, "MemberRemove", "remove member "+first.String(), func(hasty *etcd.Clients, losing etcd.Cluster) error {
		return hasty.RemoveMember(ctx, losing, first)
	})
	twice(t, "remove", func() error { return clients.RemoveMember(ctx, s.cluster(2), first) })
	if m := clients.Observe(ctx, s.cluster(2)).Membership; len(m.Members) != 1 || m.Members[0].ID != learner {
		t.Errorf("not removed: %+v", m)
	}
}

// checkLost makes a change while the responses to one method are lost. It retries until etcd allows the change.
func (s *servers) checkLost(t *testing.T, size int, method, what string, change func(*etcd.Clients, etcd.Cluster) error) {
	t.Helper()
	hasty, losing := newClients(t), s.losing(t, size, method)
	hasty.Timeout = time.Second
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		err := change(hasty, losing)
		if _, is := errors.AsType[etcd.NotYet](err); !is || time.Now().After(end) {
			// At the deadline, either side may end the call first.
			if text := fmt.Sprint(err); !strings.HasPrefix(text, what+": ") || !strings.HasSuffix(text, "; it is not known whether etcd has applied the change") {
				t.Errorf("got %s", text)
			}
			return
		}
	}
}

// TestMemberChangeFailsWithoutLeader checks that a change without a leader has no effect and is retryable.
func TestMemberChangeFailsWithoutLeader(t *testing.T) {
	t.Parallel()
	s := form(t, binaries(t)[0], nil, 3)
	clients, ctx := newClients(t), t.Context()
	answer := eventually(t, clients, s.cluster(3), "three responding members", allAnswer(3))
	i := slices.IndexFunc(answer.Membership.Members, func(m decide.Member) bool { return m.Leader })
	leader := answer.Membership.Members[i]

	// The leader may be unreachable for the client while the other members follow it.
	rest := s.cluster(3)
	rest.Pods = slices.DeleteFunc(rest.Pods, func(p etcd.Pod) bool { return p.Name == leader.Name })
	follower := rest.Pods[0].Name
	err := clients.RemoveMember(ctx, rest, leader.ID)
	checkNotYet(t, err, "remove member "+leader.ID.String()+": no leader responds: "+rest.Pods[0].Name+", "+rest.Pods[1].Name+": led by "+leader.ID.String())

	s.kill(leader.Name)
	s.kill(follower)
	answer = eventually(t, clients, s.cluster(3), "a membership without a leader", func(m decide.Membership) bool { return strings.Contains(m.Why, "no leader") })
	err = clients.CancelDowngrade(ctx, s.cluster(3))
	checkNotYet(t, err, "cancel the downgrade: no leader responds: "+answer.Membership.Why)

	stopped, stop := context.WithCancel(ctx)
	stop()
	checkRefused(t, clients.RemoveMember(stopped, s.cluster(3), leader.ID), "remove member "+leader.ID.String()+": context canceled")
}

// TestChangeIsRefusedIfPodsDisagreeOnCluster checks that a change for one cluster does not affect another cluster that
// responds under the same name.
func TestChangeIsRefusedIfPodsDisagreeOnCluster(t *testing.T) {
	t.Parallel()
	s := newServers(t, binaries(t)[0], nil)
	for i := range 2 {
		s.start(i, "new", pod(i)+"="+s.peerURL(i))
	}
	clients := newClients(t)
	eventually(t, clients, s.cluster(1), "a response from the first cluster", allAnswer(1))
	alone := s.cluster(2)
	alone.Pods = alone.Pods[1:]
	eventually(t, clients, alone, "a response from the second cluster", allAnswer(1))
	_, err := clients.AddLearner(t.Context(), s.cluster(2), s.peerURL(2))
	checkRefused(t, err, "add a learner at "+s.peerURL(2)+": the pods belong to more than one cluster")
}
