package clusters

import (
	"context"
	"fmt"
	"slices"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// seal asks etcd again and writes the sealed configuration of started members, unless the record has changed since it
// was observed. Once members can no longer bootstrap the cluster, seal opens the client Service.
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

// volumesNow returns the observed replicas after rereading the claims of the replicas in set. It clears replaced
// volumes and marks volumes that are being deleted. If a member responded between two reads of the same claim, it runs
// on that claim's volume. Otherwise, its volume is unknown: if the wrong volume were recorded, a good volume could
// later be declared lost.
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
