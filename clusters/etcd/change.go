package etcd

import (
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

// NotYet is the error of a change that etcd has refused for a reason that goes away with time.
// Nothing was changed.
type NotYet struct{ Err error }

func (e NotYet) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e NotYet) Unwrap() error { return e.Err }

// AddLearner adds a member without a vote and returns its ID. A member that has the peer URL
// already is returned as it is, be it a voter (hard case H19).
//
// A leader may take a follower for disconnected for as long as it leads, although all is well between them,
// and then refuses to add anybody (etcd issue 14523). So the voters that follow it are asked next: each
// answers for itself, and a learner does not change what a quorum is. Of a removal, which does, a follower
// that has just started may know too little: it lets go of whoever it has not heard yet; that is for the next leader.
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
			id = decide.ID(added.Member.ID) // there is one, see check
		}
		return err
	})
	return id, err
}

// PromoteLearner makes a learner a voter. One that votes already stays one (hard case H16).
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

// RemoveMember takes a member out of the list. One that is not in it is removed already (hard case
// H29); etcd would check first whether it can do without it.
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

// noteLeft notes whether the member of a pod was removed just now, or another may start there.
func (c *Clients) noteLeft(cluster Cluster, pod string, left bool) {
	if i := slices.IndexFunc(cluster.Pods, func(p Pod) bool { return p.Name == pod }); i >= 0 {
		c.left.note(cluster.Pods[i].UID, left)
	}
}

// MoveLeader hands leadership from one voter to another, unless a third one leads. Only the leader
// can do that (hard case H14, H23).
func (c *Clients) MoveLeader(ctx context.Context, cluster Cluster, from, to decide.ID) error {
	return c.change(ctx, cluster, fmt.Sprintf("move leadership from %s to %s", from, to), func(leader reply) error {
		switch leads := decide.ID(leader.status.Leader); leads {
		case to:
			return nil
		case from:
			return c.requestOnce(ctx, func(ctx context.Context) error {
				_, err := leader.client.MoveLeader(ctx, uint64(to))
				return err
			})
		default:
			return fmt.Errorf("%s leads", leads)
		}
	})
}

// DisarmAlarm takes an alarm back, of a member or of one that is gone. One that is not raised is as
// good as disarmed.
func (c *Clients) DisarmAlarm(ctx context.Context, cluster Cluster, alarm decide.Alarm) error {
	what := fmt.Sprintf("disarm the alarm %s of %s", alarm.Kind, alarm.ID)
	kind := etcdserverpb.AlarmType(etcdserverpb.AlarmType_value[string(alarm.Kind)])
	if kind == etcdserverpb.AlarmType_NONE { // which etcd's client takes for all alarms of all members
		return fmt.Errorf("%s: etcd has no such alarm", what)
	}
	return c.change(ctx, cluster, what, func(leader reply) error {
		return c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: uint64(alarm.ID), Alarm: kind})
			return err
		})
	})
}

// change has the leader do something. What says what, for the error. A member that does not lead
// could pass some changes on, but not all.
func (c *Clients) change(ctx context.Context, cluster Cluster, what string, do func(leader reply) error) error {
	return c.changeByAny(ctx, cluster, what, func(leader reply, _ []reply) error { return do(leader) })
}

// changeByAny is change by the leader, or one of the voters that follow it.
func (c *Clients) changeByAny(
	ctx context.Context, cluster Cluster, what string, do func(leader reply, followers []reply) error,
) error {
	leader, followers, err := c.voters(ctx, cluster)
	if err == nil {
		err = do(leader, followers)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// voters returns who leads in the word of the best informed, and the voters that follow it. No change
// is for pods of which some belong to another cluster: nobody knows for which of the two it was meant.
func (c *Clients) voters(ctx context.Context, cluster Cluster) (leader reply, followers []reply, err error) {
	first, last := cluster.firstAndLast()
	replies := c.askAll(ctx, cluster, first)
	if !slices.ContainsFunc(replies, reply.leads) && len(last) > 0 {
		replies = append(replies, c.askAll(ctx, cluster, last)...)
		slices.SortFunc(replies, bestFirst)
	}
	clusters := map[uint64]string{}
	for _, r := range replies {
		if r.answered() {
			clusters[r.status.Header.ClusterId] = r.pod
		}
	}
	if len(clusters) > 1 {
		return reply{}, nil, errors.New("the pods answer for more than one cluster")
	}
	i := slices.IndexFunc(replies, reply.knowsLeader)
	if err := context.Cause(ctx); err != nil {
		return reply{}, nil, err
	}
	if i < 0 || !replies[i].leads() {
		return reply{}, nil, NotYet{fmt.Errorf("no leader answers: %s", why(replies))}
	}
	leader = replies[i]
	for _, r := range replies {
		if r.follows(leader) {
			followers = append(followers, r)
		}
	}
	return leader, followers, nil
}

// currentList returns the linearizable list; it says what is so already.
func (c *Clients) currentList(ctx context.Context, leader reply) (*clientv3.MemberListResponse, error) {
	list, err := c.listFrom(clientv3.WithRequireLeader(ctx), &leader)
	if err != nil {
		return nil, refusal(fmt.Errorf("list the members first: %w", told{err}))
	}
	return list, nil
}

// requestOnce asks for a change, once: after a lost answer it may have been carried out or not.
func (c *Clients) requestOnce(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	err := ask(clientv3.WithRequireLeader(ctx))
	if err == nil {
		return nil
	}
	refused := refusal(told{cause(ctx, err)})
	if _, isNotYet := errors.AsType[NotYet](refused); !isNotYet && lost(ctx, err) {
		return fmt.Errorf("%w; whether etcd has done it is not known", refused)
	}
	return refused
}

// temporary are the refusals that go away with time: etcd checks them before it changes anything. A
// peer URL that exists is that of a member which was not listed a moment ago.
var temporary = []error{
	rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrTooManyLearners, rpctypes.ErrPeerURLExist,
	rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted,
	rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged,
	rpctypes.ErrClusterVersionUnavailable, rpctypes.ErrTooManyRequests,
}

// temporaryWords are in the refusals of that kind that etcd has no code for: a leader that did not
// get rid of its office, and one that takes no orders while it tries.
var temporaryWords = regexp.MustCompile("leader transfer took too long|raft proposal dropped")

// refusal makes the error a NotYet if it goes away with time.
func refusal(err error) error {
	isIt := func(target error) bool { return errors.Is(err, target) }
	if slices.ContainsFunc(temporary, isIt) || temporaryWords.MatchString(err.Error()) {
		return NotYet{err}
	}
	return err
}

// lost reports whether the error is not etcd's refusal, but that no word came from it, or none in
// time, or one that is no answer.
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

// unless returns the error, or nil if it says that what was asked for is so already.
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
