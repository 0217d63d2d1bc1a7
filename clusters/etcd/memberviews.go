package etcd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// poll is the result of asking members for their member lists.
type poll struct {
	// list is the linearizable list that a quorum of its voters returned, or nil. same contains these voters' IDs.
	list *clientv3.MemberListResponse
	same map[uint64]bool
	// differs describes how the lists of other members differ from list, by member ID.
	differs map[uint64]string
	// unconfirmed is true if list is nil although a member returned a list. disputed is true if, in addition, other
	// members returned different lists.
	unconfirmed, disputed bool
	// unrecorded is the list that a quorum of its voters returned, but too few of the recorded voters, or nil.
	unrecorded *clientv3.MemberListResponse
}

// view is how a member's own list compares with another member's list. The zero value means that the member did not
// return its own list.
type view struct {
	same    bool
	differs string // how its own list differs
}

// compare asks all responding members in parallel, within one timeout, for their own member lists, and compares each
// with the list that source returned. The result is in the order of replies. A member may have applied a change
// differently from the others (hard case H15), and a single member may lie. A lying leader can leave the other members
// without a leader, so they are asked too.
func (c *Clients) compare(
	ctx context.Context, list *clientv3.MemberListResponse, source *reply, replies []reply,
) []view {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	views := make([]view, len(replies))
	var asking panics.Group
	for i := range replies {
		r := &replies[i]
		switch {
		case r == source:
			views[i].same = true
		case r.answered() && r.status.Header.ClusterId == list.Header.ClusterId:
			asking.Go(func() { views[i] = c.view(ctx, list, source, r) })
		}
	}
	asking.Wait()
	return views
}

// view asks a member for its own list and compares it with list.
func (c *Clients) view(ctx context.Context, list *clientv3.MemberListResponse, source, r *reply) view {
	if r.status.IsLearner {
		return view{differs: c.learnerDisagreement(ctx, list, source, r)}
	}
	own, err := c.listFrom(ctx, r, clientv3.WithSerializable())
	if err == nil && difference(list, own) != "" && r.knowsLeader() {
		// The member may just be slightly behind. With this option, it first applies all committed changes.
		own, err = c.listFrom(clientv3.WithRequireLeader(ctx), r)
	}
	if err != nil {
		return view{}
	}
	differs := difference(list, own)
	return view{same: differs == "", differs: differs}
}

// confirm stores the list in the poll if a quorum of the voters in it returned it, if more members returned it than
// returned a different list, and if enough of the recorded voters returned it. The second condition keeps a member that
// lists no other voters from outvoting the members that respond, and the third from outvoting those that do not. If the
// list is not confirmed, confirm returns an error that names the members with different lists.
func (p *poll) confirm(cluster Cluster, list *clientv3.MemberListResponse, replies []reply, views []view) error {
	voters, same := 0, map[uint64]bool{}
	for _, entry := range list.Members {
		if !entry.IsLearner {
			voters++
		}
	}
	differs, differing, agreeing := map[uint64]string{}, []string(nil), []string(nil)
	for i, v := range views {
		if v == (view{}) {
			continue
		}
		id := replies[i].id()
		if v.differs != "" {
			differs[uint64(id)] = v.differs
			differing = append(differing, replies[i].pod+" "+v.differs)
		} else if entry := find(list, id); entry != nil && !entry.IsLearner {
			if !same[entry.ID] { // a member behind two addresses counts once
				agreeing = append(agreeing, replies[i].pod)
			}
			same[entry.ID] = true
		}
	}
	const unconfirmed = "its member list is not confirmed: "
	if len(same) >= decide.Quorum(voters) && len(same) > len(differing) && !cluster.outvotesPods(replies, views) {
		others := cluster.otherVoters(list, agreeing, same, replies)
		if len(agreeing) >= decide.Quorum(len(agreeing)+len(others)) {
			*p = poll{list: list, same: same, differs: differs}
			return nil
		}
		p.unconfirmed = true
		p.unrecorded = cmp.Or(p.unrecorded, list)
		slices.Sort(agreeing)
		return fmt.Errorf(unconfirmed+"%s returned it, but the expected voters %s did not",
			decide.Enumerate(agreeing), decide.Enumerate(others))
	}
	p.unconfirmed, p.disputed = true, p.disputed || len(differing) > 0
	but := ""
	if len(differing) > 0 {
		but = ", but " + strings.Join(differing, ", ")
	}
	return fmt.Errorf(unconfirmed+"%d of %d voters returned it%s", len(same), voters, but)
}

// outvotesPods reports whether only endpoints confirm a list that most pods contradict, although no guests are
// recorded.
func (c Cluster) outvotesPods(replies []reply, views []view) bool {
	same, different := 0, 0
	for i, v := range views {
		switch {
		case v == (view{}) || replies[i].endpoint:
		case v.differs == "":
			same++
		default:
			different++
		}
	}
	return different > same && len(c.Known) == 0
}

// otherVoters returns the recorded voters and guests that did not return the list, unless git confirms the list. A
// recorded voter that reports that it is a learner, as the list does, has been replaced, so it is not returned. Guests
// are returned even if the list does not contain them.
func (c Cluster) otherVoters(
	list *clientv3.MemberListResponse, agreeing []string, same map[uint64]bool, replies []reply,
) (others []string) {
	var ids []decide.ID
	for _, entry := range list.Members {
		ids = append(ids, decide.ID(entry.ID))
	}
	slices.Sort(ids)
	if slices.Equal(ids, c.Confirmed) {
		return nil
	}
	replaced := func(r reply) bool {
		if !r.answered() || !r.status.IsLearner || r.status.Header.ClusterId != list.Header.ClusterId {
			return false
		}
		entry := find(list, r.id())
		return entry != nil && entry.IsLearner
	}
	for _, pod := range c.Voters {
		isReplaced := slices.ContainsFunc(replies, func(r reply) bool { return r.pod == pod && replaced(r) })
		if !isReplaced && !slices.Contains(agreeing, pod) {
			others = append(others, pod)
		}
	}
	for _, guest := range c.Guests {
		if !same[uint64(guest)] {
			others = append(others, "guest "+guest.String())
		}
	}
	return others
}

// learnerDisagreement returns how the list of a member that considers itself a learner differs, or "". Such a member
// responds only to Status. It is not merely behind if it has applied as much as source, the member that returned the
// list. The earlier status of source may be older than its list, so source is asked again.
func (c *Clients) learnerDisagreement(
	ctx context.Context, list *clientv3.MemberListResponse, source, r *reply,
) string {
	if entry := find(list, r.id()); entry == nil || entry.IsLearner {
		return ""
	}
	now, err := c.statusOf(ctx, source)
	if err != nil {
		return ""
	}
	status, err := c.statusOf(ctx, r)
	if err != nil || !status.IsLearner || status.RaftAppliedIndex < now.RaftAppliedIndex {
		return ""
	}
	return "lists itself as a learner"
}

// difference returns how the other list differs from the right list. It returns "" if the differences do not matter to
// raft.
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
