package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// addLearner has etcd list a new member, unless data of an earlier one could be in its slot.
func (c *cluster) addLearner(ctx context.Context, a decide.AddLearner) (report.Outcome, error) {
	name := objects.VolumeClaimName(c.target.cluster.Name, a.Ordinal)
	claim, err := c.live.kube.Look(ctx, "PersistentVolumeClaim", c.target.cluster.Namespace, name)
	if err != nil {
		return report.Outcome{}, err
	}
	if claim != nil && claim.GetDeletionTimestamp() == nil && !c.madeAfterRemoval(a.Ordinal, string(claim.GetUID())) {
		return report.Outcome{}, fmt.Errorf("%s: PersistentVolumeClaim %s stands in its slot and may hold data of an earlier member", a, name)
	}
	return c.changeEtcd(ctx, a)
}

// madeAfterRemoval reports whether a claim in the slot of a removed member is another than that member's, so that no data are on it.
func (c *cluster) madeAfterRemoval(ordinal int, uid string) bool {
	return slices.ContainsFunc(c.state.Record.Removed, func(gone decide.RemovedMember) bool {
		return gone.Ordinal == ordinal && gone.VolumeUID != "" && gone.VolumeUID != uid
	})
}

// changeEtcd has etcd do what an action says, unless its own word of this moment is that it is so already. What etcd refuses for
// the moment is no failure: another pass finds out whether it is still to be done.
func (c *cluster) changeEtcd(ctx context.Context, action decide.Action) (report.Outcome, error) {
	now := c.ask(ctx, c.reachable(), c.clientTLS()).Membership
	switch {
	case !now.Known:
		return report.Outcome{Detail: "etcd: not yet: " + now.Why}, nil
	case now.ClusterID != c.state.Membership.ClusterID:
		return report.Outcome{}, fmt.Errorf("%s: etcd is cluster %s by now, not %s", action, now.ClusterID, c.state.Membership.ClusterID)
	case alreadySo(now, action):
		return report.Outcome{Detail: "it is so already"}, nil
	}
	err := c.tellEtcd(ctx, action)
	if notYet := (etcd.NotYet{}); errors.As(err, &notYet) {
		return report.Outcome{Detail: "etcd: not yet: " + notYet.Error()}, nil
	}
	if err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "etcd: " + action.String()}, nil
}

// alreadySo reports whether etcd is as an action would have it.
func alreadySo(now decide.Membership, action decide.Action) bool {
	lists := func(is func(decide.Member) bool) bool { return slices.ContainsFunc(now.Members, is) }
	switch a := action.(type) {
	case decide.AddLearner:
		return lists(func(m decide.Member) bool { return m.PeerURL == a.PeerURL })
	case decide.PromoteLearner:
		return lists(func(m decide.Member) bool { return m.ID == a.ID && !m.Learner })
	case decide.RemoveMember:
		return !lists(func(m decide.Member) bool { return m.ID == a.ID })
	case decide.MoveLeader:
		return lists(func(m decide.Member) bool { return m.ID == a.To && m.Leader })
	case decide.EnableDowngrade:
		return now.Downgrade == a.Version
	case decide.CancelDowngrade:
		return now.Downgrade == ""
	case decide.DisarmAlarm:
		raises := func(m decide.Member) bool { return m.ID == a.ID && slices.Contains(m.Alarms, a.Kind) }
		return !lists(raises) && !slices.Contains(now.StaleAlarms, decide.Alarm(a))
	}
	return false
}

func (c *cluster) tellEtcd(ctx context.Context, action decide.Action) error {
	clients, cluster := &c.live.etcd, etcd.Cluster{
		Namespace: c.target.cluster.Namespace, Name: c.target.cluster.Name,
		Pods: c.reachable(), TLS: c.clientTLS(), Dial: c.dial,
	}
	switch a := action.(type) {
	case decide.AddLearner:
		_, err := clients.AddLearner(ctx, cluster, a.PeerURL)
		return err
	case decide.PromoteLearner:
		return clients.PromoteLearner(ctx, cluster, a.ID)
	case decide.RemoveMember:
		return clients.RemoveMember(ctx, cluster, a.ID)
	case decide.MoveLeader:
		return clients.MoveLeader(ctx, cluster, a.From, a.To)
	case decide.EnableDowngrade:
		return clients.EnableDowngrade(ctx, cluster, a.Version)
	case decide.CancelDowngrade:
		return clients.CancelDowngrade(ctx, cluster)
	case decide.DisarmAlarm:
		return clients.DisarmAlarm(ctx, cluster, decide.Alarm(a))
	}
	return fmt.Errorf("%s is nothing for etcd", action)
}
