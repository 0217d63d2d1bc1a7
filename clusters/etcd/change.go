package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quorate.dev/quorate/reconcile/decide"
)

// NotYet is the error of a change that etcd rejected for a temporary reason. Nothing was changed.
type NotYet struct{ Err error }

func (e NotYet) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e NotYet) Unwrap() error { return e.Err }

// AddLearner adds a non-voting member and returns its ID. If a member already has the peer URL, AddLearner returns the
// ID of that member, even if it is a voter (hard case H19).
//
// A leader may consider a healthy follower disconnected for its entire term, and then rejects every addition (etcd
// issue 14523). In that case, AddLearner asks the voters that follow the leader. This is safe because each voter checks
// its own connections, and a learner does not change the quorum. A removal does change the quorum, and a follower that
// has just started may know too little: it permits the removal of members that it has not heard from yet. Removals
// therefore wait for the next leader.
func (c *Clients) AddLearner(ctx context.Context, cluster Cluster, peerURL string) (id decide.ID, err error) {
	err = c.changeByAny(ctx, cluster, "add a learner at "+peerURL, func(leader reply, followers []reply) error {
		list, err := c.currentList(ctx, leader)
		if err != nil {
			return err
		}
		has := func(m *etcdserverpb.Member) bool { return slices.Contains(m.PeerURLs, peerURL) }
		if i := slices.IndexFunc(list.Members, has); i >= 0 {
			id = decide.ID(list.Members[i].ID)
			return nil
		}
		id, err = c.addLearnerBy(ctx, leader, peerURL)
		for _, voter := range followers {
			if !errors.Is(err, rpctypes.ErrUnhealthy) {
				break
			}
			id, err = c.addLearnerBy(ctx, voter, peerURL)
		}
		c.noteLeft(cluster, podOf(decide.Member{PeerURL: peerURL}), false)
		return err
	})
	return id, err
}

func (c *Clients) addLearnerBy(ctx context.Context, voter reply, peerURL string) (id decide.ID, err error) {
	err = c.requestOnce(ctx, func(ctx context.Context) error {
		added, err := voter.client.MemberAddAsLearner(ctx, []string{peerURL})
		if err == nil {
			id = decide.ID(added.Member.ID) // check ensures that it is set
		}
		return err
	})
	return id, err
}

// PromoteLearner makes a learner a voter. A member that already votes is left unchanged (hard case H16).
func (c *Clients) PromoteLearner(ctx context.Context, cluster Cluster, id decide.ID) error {
	return c.change(ctx, cluster, "promote learner "+id.String(), func(leader reply) error {
		list, err := c.currentList(ctx, leader)
		if err != nil {
			return err
		}
		if entry := find(list, id); entry != nil && !entry.IsLearner {
			return nil
		}
		return c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.MemberPromote(ctx, uint64(id))
			return unless(err, rpctypes.ErrMemberNotLearner)
		})
	})
}

// RemoveMember removes a member from the list. A member that is not in the list is already removed (hard case H29).
// RemoveMember checks this first because etcd checks for a healthy quorum before it reports that a member is not in
// the list.
func (c *Clients) RemoveMember(ctx context.Context, cluster Cluster, id decide.ID) error {
	return c.changeByAny(ctx, cluster, "remove member "+id.String(), func(leader reply, followers []reply) error {
		list, err := c.currentList(ctx, leader)
		if err != nil || find(list, id) == nil {
			return err
		}
		err = c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.MemberRemove(ctx, uint64(id))
			return unless(err, rpctypes.ErrMemberNotFound)
		})
		if i := slices.IndexFunc(followers, func(r reply) bool { return r.id() == id }); err == nil && i >= 0 {
			c.noteLeft(cluster, followers[i].pod, true)
		}
		return err
	})
}

// noteLeft records whether the pod's member was just removed. left is false if a new member may start in the pod.
func (c *Clients) noteLeft(cluster Cluster, pod string, left bool) {
	if i := slices.IndexFunc(cluster.Pods, func(p Pod) bool { return p.Name == pod }); i >= 0 {
		c.left.note(cluster.Pods[i].UID, left)
	}
}

// MoveLeader transfers leadership from one voter to another. It does nothing if the first voter no longer leads: a
// member that stops transfers its leadership by itself, to any voter. Only the leader can transfer leadership (hard
// cases H14 and H23).
func (c *Clients) MoveLeader(ctx context.Context, cluster Cluster, from, to decide.ID) error {
	return c.change(ctx, cluster, fmt.Sprintf("move leadership from %s to %s", from, to), func(leader reply) error {
		if decide.ID(leader.status.Leader) != from {
			return nil
		}
		return c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.MoveLeader(ctx, uint64(to))
			return err
		})
	})
}

// DisarmAlarm disarms an alarm of a current or former member. It succeeds if the alarm is not active.
func (c *Clients) DisarmAlarm(ctx context.Context, cluster Cluster, alarm decide.Alarm) error {
	what := fmt.Sprintf("disarm the %s alarm of member %s", alarm.Kind, alarm.ID)
	kind := etcdserverpb.AlarmType(etcdserverpb.AlarmType_value[string(alarm.Kind)])
	if kind == etcdserverpb.AlarmType_NONE { // etcd's client treats NONE as all alarms of all members
		return fmt.Errorf("%s: etcd does not have this kind of alarm", what)
	}
	return c.change(ctx, cluster, what, func(leader reply) error {
		return c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: uint64(alarm.ID), Alarm: kind})
			return err
		})
	})
}

// change makes a change through the leader, because other members forward only some changes to the leader. what
// describes the change in errors.
func (c *Clients) change(ctx context.Context, cluster Cluster, what string, do func(leader reply) error) error {
	return c.changeByAny(ctx, cluster, what, func(leader reply, _ []reply) error { return do(leader) })
}

// changeByAny makes a change through the leader or through a voter that follows it. If it is uncertain which member
// leads, changeByAny requests the change from each member that claims to lead: a member that only pretends to lead
// could report a change as done. Changes can be repeated.
func (c *Clients) changeByAny(
	ctx context.Context, cluster Cluster, what string, do func(leader reply, followers []reply) error,
) error {
	agreeing, err := c.agreeing(ctx, cluster)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	leaders, certain := leadersOf(agreeing)
	var failed error
	done := false
	for _, leader := range leaders {
		var followers []reply
		for _, r := range agreeing {
			if r.follows(leader) {
				followers = append(followers, r)
			}
		}
		err := do(leader, followers)
		if err == nil && certain {
			return nil
		}
		done, failed = done || err == nil, cmp.Or(failed, err)
	}
	if done {
		return nil
	}
	return fmt.Errorf("%s: %w", what, failed)
}

// leadersOf returns the voters that claim to lead, starting with the voter that most voters name as their leader. It is
// certain that this voter leads if most of the voters that returned the member list name it.
func leadersOf(agreeing []reply) (leaders []reply, certain bool) {
	named := map[uint64]int{}
	for _, r := range agreeing {
		named[r.status.Leader]++
		if r.leads() {
			leaders = append(leaders, r)
		}
	}
	times := func(r reply) int { return named[r.status.Header.MemberId] }
	slices.SortStableFunc(leaders, func(a, b reply) int { return cmp.Compare(times(b), times(a)) })
	return leaders, len(leaders) > 0 && times(leaders[0]) >= decide.Quorum(len(agreeing))
}

// agreeing returns the voters that returned the confirmed member list. At least one of them claims to lead. agreeing
// fails if the pods belong to different clusters, because it is then unclear which cluster a change is for.
func (c *Clients) agreeing(ctx context.Context, cluster Cluster) ([]reply, error) {
	replies, poll := c.askForList(ctx, cluster)
	clusters := map[uint64]bool{}
	for _, r := range replies {
		if r.answered() {
			clusters[r.status.Header.ClusterId] = true
		}
	}
	if len(clusters) > 1 {
		return nil, errors.New("the pods belong to more than one cluster")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(replies, reply.leads) {
		return nil, NotYet{fmt.Errorf("no leader responds: %s", why(replies))}
	}
	if poll.list == nil {
		return nil, NotYet{fmt.Errorf("no quorum confirms the member list: %s", why(replies))}
	}
	agreeing := slices.DeleteFunc(slices.Clone(replies), func(r reply) bool {
		return !r.answered() || !poll.same[r.status.Header.MemberId]
	})
	if !slices.ContainsFunc(agreeing, reply.leads) {
		return nil, NotYet{errors.New("the leader does not return the confirmed member list")}
	}
	return agreeing, nil
}

// currentList returns the linearizable list, which includes all changes made so far.
func (c *Clients) currentList(ctx context.Context, leader reply) (*clientv3.MemberListResponse, error) {
	list, err := c.listFrom(clientv3.WithRequireLeader(ctx), &leader)
	if err != nil {
		return nil, refusal(fmt.Errorf("list the members first: %w", shortError{err}))
	}
	return list, nil
}

// requestOnce requests a change once. If the response is lost, etcd may or may not have made the change.
func (c *Clients) requestOnce(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	err := ask(clientv3.WithRequireLeader(ctx))
	if err == nil {
		return nil
	}
	refused := refusal(shortError{cause(ctx, err)})
	if _, isNotYet := errors.AsType[NotYet](refused); !isNotYet && lost(ctx, err) {
		return fmt.Errorf("%w; it is not known whether etcd has applied the change", refused)
	}
	return refused
}

// temporary lists the errors with which etcd rejects a request for a temporary reason, before it changes anything.
// ErrPeerURLExist means that a member was added after the list was read.
var temporary = []error{
	rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrTooManyLearners, rpctypes.ErrPeerURLExist,
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted,
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged,
	rpctypes.ErrClusterVersionUnavailable, rpctypes.ErrTooManyRequests,
}

// temporaryWords matches temporary rejections that have no error code: the leader failed to transfer its leadership, or
// rejects proposals while it tries to.
var temporaryWords = regexp.MustCompile("leader transfer took too long|raft proposal dropped")

// refusal wraps the error in a NotYet if it is temporary.
func refusal(err error) error {
	isIt := func(target error) bool { return errors.Is(err, target) }
	if slices.ContainsFunc(temporary, isIt) || temporaryWords.MatchString(err.Error()) {
		return NotYet{err}
	}
	return err
}

// lost reports whether the error means that the response was missing, late or unacceptable, rather than that etcd
// rejected the request.
func lost(ctx context.Context, err error) bool {
	if _, is := errors.AsType[noAnswer](err); is {
		return true
	}
	code := status.Code(err)
	if known, is := errors.AsType[rpctypes.EtcdError](err); is {
		code = known.Code()
	}
	return ctx.Err() != nil || slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled},
		code)
}

// unless returns err, or nil if err means that the requested change has already been made.
func unless(err, already error) error {
	if errors.Is(err, already) {
		return nil
	}
	return err
}

// find returns the entry of a member, or nil.
func find(list *clientv3.MemberListResponse, id decide.ID) *etcdserverpb.Member {
	for _, entry := range list.Members {
		if entry.ID == uint64(id) {
			return entry
		}
	}
	return nil
}
