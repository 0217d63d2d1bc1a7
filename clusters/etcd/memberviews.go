package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// compare asks all members in parallel, within one timeout, for their own member list, and fills in how it differs
// from the linearizable list. A member may have applied a change differently than the others (hard case H15).
func (c *Clients) compare(
	ctx context.Context, list *clientv3.MemberListResponse, members []decide.Member, replies []reply,
) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	var asking panics.Group
	for i := range members {
		m := &members[i]
		if r := replyOf(uint64(m.ID), list.Header.ClusterId, replies); r != nil && m.Answers &&
			r.status.Header.MemberId != list.Header.MemberId {
			asking.Go(func() { m.Disagrees = c.disagreement(ctx, list, *r, replies) })
		}
	}
	asking.Wait()
}

// disagreement returns how the member's list differs. It is empty if the list does not differ, or if the
// difference is not known.
func (c *Clients) disagreement(
	ctx context.Context, list *clientv3.MemberListResponse, r reply, replies []reply,
) string {
	if r.status.IsLearner {
		return c.learnerDisagreement(ctx, list, r, replies)
	}
	belief, err := c.listFrom(ctx, &r, clientv3.WithSerializable())
	if err != nil || difference(list, belief) == "" {
		return ""
	}
	// The member may just be slightly behind. With this option, it first applies all committed changes.
	if belief, err = c.listFrom(clientv3.WithRequireLeader(ctx), &r); err != nil {
		return ""
	}
	return difference(list, belief)
}

// learnerDisagreement is like disagreement, for a member that considers itself a learner and therefore responds only
// to Status. Once it has applied as much as the member that returned the list, it is not behind.
func (c *Clients) learnerDisagreement(
	ctx context.Context, list *clientv3.MemberListResponse, r reply, replies []reply,
) string {
	source := replyOf(list.Header.MemberId, list.Header.ClusterId, replies)
	if entry := find(list, r.id()); entry == nil || entry.IsLearner || source == nil {
		return ""
	}
	status, err := c.statusOf(ctx, &r)
	if err != nil || !status.IsLearner || status.RaftAppliedIndex < source.status.RaftAppliedIndex {
		return ""
	}
	return "lists itself as a learner"
}

// difference returns how a list differs from the right list. It is empty if the difference does not matter to raft.
func difference(right, other *clientv3.MemberListResponse) string {
	var differs []string
	listed, believes := byID(right), byID(other)
	for _, entry := range right.Members {
		believed := believes[entry.ID]
		switch {
		case believed == nil:
			differs = append(differs, "does not list "+label(entry))
		case believed.IsLearner && !entry.IsLearner:
			differs = append(differs, "lists "+label(entry)+" as a learner")
		case !believed.IsLearner && entry.IsLearner:
			differs = append(differs, "lists "+label(entry)+" as a voter")
		case !sameURLs(believed.PeerURLs, entry.PeerURLs):
			differs = append(differs, fmt.Sprintf("lists %s at %s", label(entry),
				strings.Join(believed.PeerURLs, ", ")))
		}
	}
	for _, believed := range other.Members {
		if listed[believed.ID] == nil {
			differs = append(differs, fmt.Sprintf("lists %s, which has been removed", decide.ID(believed.ID)))
		}
	}
	return readable(strings.Join(differs, "; "), longestList)
}

func byID(list *clientv3.MemberListResponse) map[uint64]*etcdserverpb.Member {
	entries := map[uint64]*etcdserverpb.Member{}
	for _, entry := range list.Members {
		entries[entry.ID] = entry
	}
	return entries
}

// label returns the name of a member, or its ID if it does not have a name yet.
func label(entry *etcdserverpb.Member) string {
	if entry.Name != "" {
		return entry.Name
	}
	return decide.ID(entry.ID).String()
}

func sameURLs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
