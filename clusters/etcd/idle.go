package etcd

import (
	"context"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// appendIfIdle makes etcd append an entry to its Raft log if a member does not respond. After a member has received a
// snapshot, it does not count the snapshot's entries as applied until it applies the next entry (applySnapshot in
// etcd's server/etcdserver/server.go does not call setAppliedIndex; seen in 3.5.35, 3.6.16 and 3.7.3). If there are
// more than 5,000 such entries, the member rejects its own first request and does not serve clients. If no application
// writes to the cluster, the member would wait forever. AlarmList is the only request that adds a log entry without
// changing anything.
func (c *Clients) appendIfIdle(ctx context.Context, m decide.Membership, replies []reply) {
	leader := slices.IndexFunc(replies, reply.leads)
	if leader < 0 || !slices.ContainsFunc(m.Members, func(m decide.Member) bool { return !m.Answers }) {
		return
	}
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	_, _ = replies[leader].client.AlarmList(ctx) // the next pass repeats it if it fails
}
