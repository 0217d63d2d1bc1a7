package clusters

import (
	"context"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// seal writes the sealed configuration of members that have started, after asking etcd once more,
// and only over the record that was observed. Once no member may found the cluster any more, it
// leads clients to the members.
func (c *cluster) seal(ctx context.Context, a decide.Seal) (report.Outcome, error) {
	answer := c.askAgain(ctx)
	if !answer.Membership.Known || answer.Membership.ClusterID != a.ClusterID {
		return report.Outcome{}, fmt.Errorf("etcd no longer confirms that this is cluster %s", a.ClusterID)
	}
	now := c.state
	now.Membership = answer.Membership
	var err error
	if now.Replicas, err = c.volumesNow(ctx, a.Members); err != nil {
		return report.Outcome{}, err
	}
	in, err := c.input(decide.SealedRecord(now, a, newToken()))
	if err != nil {
		return report.Outcome{}, err
	}
	in.Peers = c.peers(now.Membership)
	in.WithoutSecrets = true
	return c.applySealed(ctx, in)
}

func (c *cluster) applySealed(ctx context.Context, in objects.Input) (report.Outcome, error) {
	clients := objects.Identity{Kind: "Service", Name: c.names.ClientService}
	opens := !in.Leads && !in.Record.Closed()
	return c.apply(ctx, in, func(o objects.Object) bool {
		return o.Kind == "ConfigMap" ||
			opens && o.Identity == clients
	})
}

// volumesNow are the replicas as observed, but those of that set without a volume if theirs is another one by now, and
// with one that goes if it is being deleted by now. A member that answered between two looks at the same volume runs on
// it; of any other it is not known which one it runs on, and a wrong one on record would prove one day that a good one
// was lost.
func (c *cluster) volumesNow(ctx context.Context, set decide.Ordinals) ([]decide.Replica, error) {
	replicas := slices.Clone(c.state.Replicas)
	for i := range replicas {
		r := &replicas[i]
		if !set.Has(r.Ordinal) || r.VolumeUID == "" {
			continue
		}
		now, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace,
			objects.VolumeClaimName(c.state.Name, r.Ordinal))
		if err != nil {
			return nil, err
		}
		if now == nil || string(now.GetUID()) != r.VolumeUID {
			r.VolumeUID = ""
		} else {
			r.VolumeTerminating = now.GetDeletionTimestamp() != nil
		}
	}
	return replicas, nil
}
