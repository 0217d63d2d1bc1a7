package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// addLearner adds a learner to etcd, unless the learner's slot may contain the data of an earlier member.
func (c *cluster) addLearner(ctx context.Context, a decide.AddLearner) (report.Outcome, error) {
	name := objects.VolumeClaimName(c.target.Cluster.Name, a.Ordinal)
	claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil {
		return report.Outcome{}, err
	}
	if claim != nil && claim.GetDeletionTimestamp() == nil && !c.madeAfterRemoval(a.Ordinal, string(claim.GetUID())) {
		return report.Outcome{}, fmt.Errorf("%s: "+
			"PersistentVolumeClaim %s has the new member's name and may hold an earlier member's data", a, name)
	}
	pod, err := c.kube().Look(ctx, "Pod", c.target.Cluster.Namespace, c.state.ReplicaName(a.Ordinal))
	if err != nil {
		return report.Outcome{}, err
	}
	volumeGoes := claim != nil && claim.GetDeletionTimestamp() != nil
	podStays := pod != nil && pod.GetDeletionTimestamp() == nil
	if volumeGoes && podStays {
		return report.Outcome{Detail: "not yet: the volume with the new member's name is being deleted, but a pod " +
			"still uses it"}, nil
	}
	added := addition(a)
	added.unless = c.besideJoining
	return c.changeEtcd(ctx, a, added)
}

// promoteLearner promotes a learner to voter if the conditions for the promotion still hold.
func (c *cluster) promoteLearner(ctx context.Context, a decide.PromoteLearner) (report.Outcome, error) {
	wanted := promotion(a)
	wanted.unless = func(ctx context.Context, now decide.Membership) (string, error) {
		again := c.state
		again.Membership = now
		var err error
		if ordinal, ours := c.state.Ordinal(a.Name); ours {
			again.Replicas, err = c.volumesNow(ctx, decide.Ordinals(0).With(ordinal))
		}
		if err != nil || again.MayPromote(a.ID) {
			return "", err
		}
		return a.Name + " no longer responds, its volume is being deleted, too many voters no longer respond, or " +
				"members may hold different data or member lists",
			nil
	}
	return c.changeEtcd(ctx, a, wanted)
}

// besideJoining returns a message that names a member that may be about to start, or "". If another member were added
// now, the member that is about to start would do so with an outdated member list (hard case H18). A sealed learner
// that has started does not count.
func (c *cluster) besideJoining(ctx context.Context, now decide.Membership) (string, error) {
	for _, m := range now.Members {
		if !m.Learner && m.Started {
			continue
		}
		record, _, err := c.recordNow(ctx)
		if err != nil {
			return "", err
		}
		if record.Hosts(m.ID) {
			continue // it has started, because otherwise its cluster would not have been adopted
		}
		ordinal, ours := c.state.OrdinalOf(m)
		if recorded, _ := record.Member(ordinal); !ours || !m.Started || recorded.Mode != decide.Sealed {
			return fmt.Sprintf("%s may be about to start", cmp.Or(m.Name, m.PeerURL)), nil
		}
	}
	return "", nil
}

// madeAfterRemoval reports whether the claim in a removed member's slot is a new, empty claim, rather than the removed
// member's claim.
func (c *cluster) madeAfterRemoval(ordinal int, uid string) bool {
	return slices.ContainsFunc(c.state.Record.Removed, func(gone decide.RemovedMember) bool {
		return gone.Ordinal == ordinal && gone.VolumeUID != "" && gone.VolumeUID != uid
	})
}

// disarmAlarm disarms an alarm. It disarms a refuted CORRUPT alarm only after all members have again reported that they
// hold the same data.
func (c *cluster) disarmAlarm(ctx context.Context, a decide.DisarmAlarm) (report.Outcome, error) {
	if before := c.state; before.Refuted(decide.Alarm(a)) {
		before.Membership = c.askAgain(ctx).Membership
		if !before.Membership.Known || !before.Refuted(decide.Alarm(a)) {
			return report.Outcome{Detail: "etcd: not yet: the members are no longer known to hold the same data"}, nil
		}
	}
	return c.changeEtcd(ctx, a, disarming(a))
}

// change is a change that an action requests from etcd.
type change struct {
	// alreadySo reports whether etcd is already in the requested state.
	alreadySo func(now decide.Membership) bool
	// unless, if set, returns the reason why the change must not be made now, or "".
	unless func(ctx context.Context, now decide.Membership) (string, error)
	// patient is set if the change may rely on a member not responding, so that slow members get their full timeout.
	patient bool
	request func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error
}

// changeEtcd asks etcd again, and requests the change unless it has already been made. A temporary rejection is not a
// failure: the next pass determines whether the change is still needed.
func (c *cluster) changeEtcd(ctx context.Context, action decide.Action, wanted change) (report.Outcome, error) {
	ask := c.askAgain
	if wanted.patient {
		ask = c.askPatiently
	}
	now := ask(ctx).Membership
	switch {
	case !now.Known:
		return report.Outcome{Detail: "etcd: not yet: " + now.Why}, nil
	case now.ClusterID != c.state.Membership.ClusterID:
		return report.Outcome{}, fmt.Errorf("%s: etcd now reports cluster %s, not %s", action, now.ClusterID,
			c.state.Membership.ClusterID)
	case wanted.alreadySo(now):
		return report.Outcome{Detail: "already done"}, nil
	}
	if wanted.unless != nil {
		why, err := wanted.unless(ctx, now)
		if err != nil {
			return report.Outcome{}, fmt.Errorf("%s: %w", action, err)
		}
		if why != "" {
			return report.Outcome{Detail: "not yet: " + why}, nil
		}
	}
	if err := c.stillOurs(ctx); err != nil {
		return report.Outcome{}, err
	}
	err := wanted.request(ctx, &c.live.etcd, c.etcd(c.asked(), c.clientTLS()))
	if notYet := (etcd.NotYet{}); errors.As(err, &notYet) {
		return report.Outcome{Detail: "etcd: not yet: " + notYet.Error()}, nil
	}
	if err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "etcd: " + c.state.DescribeAction(action)}, nil
}

// lists reports whether etcd lists a member for which is returns true.
func lists(now decide.Membership, is func(decide.Member) bool) bool {
	return slices.ContainsFunc(now.Members, is)
}

func addition(a decide.AddLearner) change {
	return change{
		alreadySo: func(now decide.Membership) bool {
			return lists(now, func(m decide.Member) bool { return m.PeerURL == a.PeerURL })
		},
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			_, err := clients.AddLearner(ctx, cluster, a.PeerURL)
			return err
		},
	}
}

func promotion(a decide.PromoteLearner) change {
	return change{
		alreadySo: func(now decide.Membership) bool {
			return lists(now, func(m decide.Member) bool { return m.ID == a.ID && !m.Learner })
		},
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.PromoteLearner(ctx, cluster, a.ID)
		},
	}
}

func removal(a decide.RemoveMember) change {
	return change{
		alreadySo: func(now decide.Membership) bool {
			return !lists(now, func(m decide.Member) bool { return m.ID == a.ID })
		},
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.RemoveMember(ctx, cluster, a.ID)
		},
	}
}

func moveLeader(a decide.MoveLeader) change {
	return change{
		alreadySo: func(now decide.Membership) bool {
			return lists(now, func(m decide.Member) bool { return m.ID != a.From && m.Leader })
		},
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.MoveLeader(ctx, cluster, a.From, a.To)
		},
	}
}

func downgrade(a decide.EnableDowngrade) change {
	return change{
		alreadySo: func(now decide.Membership) bool { return now.Downgrade == a.Version },
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.EnableDowngrade(ctx, cluster, a.Version)
		},
	}
}

func noDowngrade(decide.CancelDowngrade) change {
	return change{
		alreadySo: func(now decide.Membership) bool { return now.Downgrade == "" },
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.CancelDowngrade(ctx, cluster)
		},
	}
}

func disarming(a decide.DisarmAlarm) change {
	return change{
		alreadySo: func(now decide.Membership) bool {
			raises := func(m decide.Member) bool { return m.ID == a.ID && slices.Contains(m.Alarms, a.Kind) }
			return !lists(now, raises) && !slices.Contains(now.StaleAlarms, decide.Alarm(a))
		},
		request: func(ctx context.Context, clients *etcd.Clients, cluster etcd.Cluster) error {
			return clients.DisarmAlarm(ctx, cluster, decide.Alarm(a))
		},
	}
}
