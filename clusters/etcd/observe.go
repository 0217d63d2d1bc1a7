package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// Answer is the state of a cluster as reported by its members.
type Answer struct {
	// Membership is Known only if a majority of the voters in the list, and of the recorded voters, returned the list.
	Membership decide.Membership
	// ClusterIDs maps pod names to the cluster IDs that the pods report. Pods that did not respond are missing.
	ClusterIDs map[string]decide.ID
}

// reply is a pod's or an endpoint's response to a status request.
type reply struct {
	pod string
	// endpoint is true if it is an endpoint's response.
	endpoint bool
	client   *client
	// status is nil if there was no response.
	status *clientv3.StatusResponse
	// err is why the pod did not respond. It is set later if the pod responded but could not list the members.
	err error
}

// Observe asks all pods in parallel for their status, then one of them for the member list, and then the other members
// whether their own lists agree. It never fails: it reports problems in Membership.Why and in each member's Why. It
// takes milliseconds if every member responds or refuses the connection. In the worst case it takes a few timeouts: one
// for the members' status, two for the list and its comparison, and all of them again for the pods that are asked last.
// Members are asked for their hashes only if there is reason to doubt their data, or if cluster requests it. Observe
// changes nothing in etcd, but may append an entry to the Raft log: see appendIfIdle.
func (c *Clients) Observe(ctx context.Context, cluster Cluster) Answer {
	c.dropIdle()
	replies, poll := c.askForList(ctx, cluster)
	answer := Answer{ClusterIDs: map[string]decide.ID{}}
	for _, r := range replies {
		if r.answered() {
			answer.ClusterIDs[r.pod] = decide.ID(r.status.Header.ClusterId)
		}
	}
	m := &answer.Membership
	if poll.list != nil {
		if *m = cluster.membership(poll.list, replies); tooManyAlarms(m) {
			m.Unconfirmed = true
			return answer
		}
		m.Known = true
		for i := range m.Members {
			m.Members[i].Disagrees = poll.differs[uint64(m.Members[i].ID)]
		}
		c.appendIfIdle(ctx, *m, replies)
		if cluster.compares(*m) || m.HasCorruptAlarm() {
			c.hash(ctx, m, replies)
		}
		return answer
	}
	seen := poll.unrecorded
	if seen == nil {
		seen = c.belief(ctx, replies)
	}
	if seen != nil {
		if *m = cluster.membership(seen, replies); tooManyAlarms(m) {
			m.Unconfirmed = poll.unconfirmed
			return answer
		}
	}
	m.Why, m.Unconfirmed, m.Disputed = why(replies), poll.unconfirmed, poll.disputed
	m.Unrecorded = poll.unrecorded != nil
	return answer
}

// compares reports whether members are asked for their hashes even without an alarm.
func (c Cluster) compares(m decide.Membership) bool {
	voters := len(m.Voters())
	return c.CompareData || c.CompareFrom > 0 && voters >= c.CompareFrom && voters == len(m.Members) ||
		c.CompareHealthy && healthy(m.Members)
}

// healthy reports whether there are several members, and all of them are responding voters of the same version.
func healthy(members []decide.Member) bool {
	return len(members) > 1 && !slices.ContainsFunc(members, func(m decide.Member) bool {
		return m.Learner || !m.Answers || m.Version != members[0].Version
	})
}

// askForList asks the pods for their status and for the member list. Pods whose members are recorded as removed are
// asked last, because their etcd is about to stop, and only if the other pods do not return a list or if their list
// still contains the member.
func (c *Clients) askForList(ctx context.Context, cluster Cluster) ([]reply, poll) {
	first, last := cluster.firstAndLast()
	replies := cluster.accept(c.askAll(ctx, cluster, first))
	poll := c.list(ctx, cluster, replies)
	if poll.list != nil {
		last = slices.DeleteFunc(last, func(p Pod) bool { return !cluster.lists(poll.list, p.Name) })
	}
	if len(last) == 0 {
		return replies, poll
	}
	replies = cluster.accept(append(replies, c.askAll(ctx, cluster, last)...))
	return replies, c.list(ctx, cluster, replies)
}

// accept returns the replies that count, best first. Endpoints are untrusted: see reject. If several endpoints lead to
// one member, or an endpoint leads to a member whose pod has responded, only one reply counts.
func (c Cluster) accept(replies []reply) []reply {
	elsewhere := c.formedElsewhere(replies)
	for i := range replies {
		if r := &replies[i]; r.endpoint && r.answered() {
			if err := c.reject(*r, elsewhere); err != nil {
				r.status, r.err = nil, err
			}
		}
	}
	slices.SortFunc(replies, bestFirst)
	responded := map[[2]uint64]bool{}
	for _, r := range replies {
		if !r.endpoint && r.answered() {
			responded[r.member()] = true
		}
	}
	return slices.DeleteFunc(replies, func(r reply) bool {
		if !r.endpoint || !r.answered() {
			return false
		}
		again := responded[r.member()]
		responded[r.member()] = true
		return again
	})
}

// formedElsewhere reports whether no guests are recorded and all pods that have responded belong to clusters other than
// the adopted one.
func (c Cluster) formedElsewhere(replies []reply) bool {
	if c.Adopted == 0 || len(c.Known) > 0 {
		return false
	}
	elsewhere := false
	for _, r := range replies {
		if !r.endpoint && r.answered() {
			if decide.ID(r.status.Header.ClusterId) == c.Adopted {
				return false
			}
			elsewhere = true
		}
	}
	return elsewhere
}

// reject returns an error if a response from an endpoint does not count: if it is from a cluster other than the adopted
// one, from a replica, which responds only in its pod, or from a member that is not recorded. If the pods have formed a
// different cluster, no endpoint counts.
func (c Cluster) reject(r reply, elsewhere bool) error {
	switch belongs := decide.ID(r.status.Header.ClusterId); {
	case elsewhere:
		return fmt.Errorf("the pods do not belong to cluster %s", c.Adopted)
	case c.Adopted != 0 && belongs != c.Adopted:
		return fmt.Errorf("it belongs to cluster %s, not %s", belongs, c.Adopted)
	case slices.Contains(c.Replicas, r.id()):
		return fmt.Errorf("it leads to a replica, %s", r.id())
	case len(c.Known) > 0 && !slices.Contains(c.Known, r.id()):
		return fmt.Errorf("it leads to member %s, which is not recorded", r.id())
	}
	return nil
}

// firstAndLast splits the pods into those to ask first and those to ask last.
func (c Cluster) firstAndLast() (first, last []Pod) {
	for _, pod := range c.Pods {
		if pod.Gone {
			last = append(last, pod)
		} else {
			first = append(first, pod)
		}
	}
	return first, last
}

// lists reports whether the list contains a member that runs in the pod.
func (c Cluster) lists(list *clientv3.MemberListResponse, pod string) bool {
	return slices.ContainsFunc(list.Members,
		func(m *etcdserverpb.Member) bool { return podOf(entryOf(m)) == pod && !c.foreign(entryOf(m)) })
}

// askAll asks the given pods for their status. Once most pods have responded, it shortens the timeout for the rest,
// because one of them is often stopping or starting. An unready pod that recently failed to respond gets only a few
// times as long as the other pods took, because a joining member accepts connections for seconds before it responds.
// The same applies to a member that was recently removed and is stopping.
func (c *Clients) askAll(ctx context.Context, cluster Cluster, pods []Pod) []reply {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	brief, cancelBrief := context.WithCancelCause(ctx)
	defer cancelBrief(nil)
	replies, impatience, start := make([]reply, len(pods)), c.impatience(), time.Now()
	mostHaveAnswered := func() {
		time.AfterFunc(impatience, func() {
			cancel(fmt.Errorf("no response within %s of the other members' "+
				"responses", impatience))
		})
		time.AfterFunc(min(impatience, max(soon, 4*time.Since(start))), func() { cancelBrief(errNotSoon) })
	}
	var answers atomic.Int32
	var asking panics.Group
	for i, pod := range pods {
		asking.Go(func() {
			slow := pod.Unready && c.silent.justNow(pod.UID) || c.left.justNow(pod.UID)
			within, hurried := ctx, slow && !cluster.Patient
			if hurried {
				within = brief
			}
			replies[i] = c.ask(within, cluster, pod)
			if answered := replies[i].answered(); answered || !hurried {
				c.silent.note(pod.UID, !answered)
			}
			if replies[i].knowsLeader() && int(answers.Add(1)) == len(replies)/2+1 {
				mostHaveAnswered()
			}
		})
	}
	asking.Wait()
	slices.SortFunc(replies, bestFirst)
	return replies
}

// ask asks one pod for its status. An existing connection may have broken unnoticed, or may lead to the pod's previous
// address. If so, ask tries a new connection with the full timeout, as for a newly started process.
func (c *Clients) ask(ctx context.Context, cluster Cluster, pod Pod) reply {
	timeout := c.timeout()
	if pod.Unready {
		timeout = min(timeout, c.impatience())
	}
	r, kept := c.askOnce(ctx, cluster, pod, timeout)
	if !r.answered() && kept && ctx.Err() == nil {
		r, _ = c.askOnce(ctx, cluster, pod, timeout)
	}
	if !r.answered() && ctx.Err() != nil {
		r.err = context.Cause(ctx) // the other pods' responses ended it, even if its own timeout was shorter
	}
	return r
}

func (c *Clients) askOnce(ctx context.Context, cluster Cluster, pod Pod, timeout time.Duration) (r reply, kept bool) {
	r.pod, r.endpoint = pod.Name, pod.Endpoint
	if r.client, kept, r.err = c.client(cluster, pod); r.err != nil {
		return r, kept
	}
	if kept {
		timeout = min(timeout, c.impatience()) // the connection is up, so a healthy member responds immediately
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no response within %s", timeout))
	defer cancel()
	// The endpoint is unused, because the connection leads only to this member.
	status, err := r.client.Status(ctx, "")
	if err != nil {
		c.drop(r.client)
		r.err = cause(ctx, err)
		return r, kept
	}
	r.status = status
	return r, kept
}

// list asks one member after another for the member list until a quorum of the voters in a list confirms it, and enough
// of the recorded voters do.
func (c *Clients) list(ctx context.Context, cluster Cluster, replies []reply) (result poll) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*c.timeout(), fmt.Errorf("no response within %s", 2*c.timeout()))
	defer cancel()
	for i := range replies {
		r := &replies[i]
		if !r.knowsLeader() || r.status.IsLearner { // etcd's learners respond only to Status
			continue
		}
		// A member that loses its leader during the request returns an error instead of waiting for the next
		// leader.
		var list *clientv3.MemberListResponse
		if list, r.err = c.listFrom(clientv3.WithRequireLeader(ctx), r); r.err != nil {
			continue
		}
		if r.err = result.confirm(cluster, list, replies, c.compare(ctx, list, r, replies)); r.err == nil {
			return result
		}
	}
	return result
}

// belief returns the best-informed member's own list, or nil.
func (c *Clients) belief(ctx context.Context, replies []reply) *clientv3.MemberListResponse {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	for i := range replies {
		if r := &replies[i]; r.answered() && !r.status.IsLearner {
			if belief, err := c.listFrom(ctx, r, clientv3.WithSerializable()); err == nil {
				return belief
			}
		}
	}
	return nil
}

func (c *Clients) listFrom(
	ctx context.Context, r *reply, options ...clientv3.OpOption,
) (*clientv3.MemberListResponse, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	list, err := r.client.MemberList(ctx, options...)
	switch {
	case err != nil:
		return nil, cause(ctx, err)
	case !r.is(list.Header):
		return nil, noAnswer{errAnother}
	}
	return list, nil
}

// statusOf asks a member for its current status.
func (c *Clients) statusOf(ctx context.Context, r *reply) (*clientv3.StatusResponse, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	status, err := r.client.Status(ctx, "")
	switch {
	case err != nil:
		return nil, cause(ctx, err)
	case !r.is(status.Header):
		return nil, errAnother
	}
	return status, nil
}

// deadline limits a request to one member.
func (c *Clients) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.timeout(), fmt.Errorf("no response within %s", c.timeout()))
}

func (r reply) id() decide.ID { return decide.ID(r.status.Header.MemberId) }

// member returns the IDs of the responding member's cluster and of the member.
func (r reply) member() [2]uint64 {
	return [2]uint64{r.status.Header.ClusterId, r.status.Header.MemberId}
}

// is reports whether a later response is from the same member.
func (r reply) is(header *etcdserverpb.ResponseHeader) bool {
	return says(header) && header.ClusterId == r.status.Header.ClusterId && header.MemberId == r.status.Header.MemberId
}

func (r reply) answered() bool { return r.status != nil }

func (r reply) knowsLeader() bool { return r.answered() && r.status.Leader != 0 }

func (r reply) leads() bool { return r.knowsLeader() && r.status.Leader == r.status.Header.MemberId }

// follows reports whether the reply is from a voter that follows the given leader.
func (r reply) follows(leader reply) bool {
	return r.knowsLeader() && !r.leads() && !r.status.IsLearner &&
		r.status.RaftTerm == leader.status.RaftTerm && r.status.Leader == leader.status.Leader
}

// bestFirst sorts members in the order in which they are asked for the list: the leader of the newest term first, then
// by log length, longest first. If there are two leaders because one has not yet noticed that it was deposed, their
// terms differ.
func bestFirst(a, b reply) int {
	if a.answered() != b.answered() {
		return yesFirst(a.answered(), b.answered())
	}
	if !a.answered() {
		return cmp.Compare(a.pod, b.pod)
	}
	return cmp.Or(
		cmp.Compare(b.status.RaftTerm, a.status.RaftTerm),
		yesFirst(a.leads(), b.leads()),
		cmp.Compare(b.status.RaftIndex, a.status.RaftIndex),
		cmp.Compare(a.pod, b.pod),
	)
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
