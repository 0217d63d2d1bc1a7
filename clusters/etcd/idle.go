package etcd

import (
	"context"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// appendIfIdle lets etcd append an entry to its Raft log if a member does not respond. After a member has received a
// snapshot, it does not know that it has applied the snapshot's entries until it applies the next entry (applySnapshot in
// etcd's server/etcdserver/server.go does not call setAppliedIndex; seen in 3.5.35, 3.6.16 and 3.7.3). If they are more
// than 5,000, it rejects its own first request and does not serve clients. In a cluster that no application writes to,
// it would wait forever. A request for the alarms is the only one that changes nothing but is an entry in the log.
func (c *Clients) appendIfIdle(ctx context.Context, m decide.Membership, replies []reply) {
	leader := slices.IndexFunc(replies, reply.leads)
	if leader < 0 || !slices.ContainsFunc(m.Members, func(m decide.Member) bool { return !m.Answers }) {
		return
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	_, _ = replies[leader].client.AlarmList(ctx) // the next pass repeats it if it fails
}
