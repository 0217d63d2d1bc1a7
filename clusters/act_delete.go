package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// delete deletes an object, unless it has been replaced since it was observed or is already being deleted.
func (c *cluster) delete(ctx context.Context, id objects.Identity, uid string) (report.Outcome, error) {
	namespace := c.target.Cluster.Namespace
	found, err := c.kube().Look(ctx, id.Kind, namespace, id.Name)
	if err != nil {
		return report.Outcome{}, err
	}
	deleted := false
	if found != nil && string(found.GetUID()) == uid && found.GetDeletionTimestamp() == nil {
		if err := c.stillOurs(ctx); err != nil {
			return report.Outcome{}, err
		}
		if deleted, err = c.kube().Delete(ctx, id.Kind, found); err != nil {
			return report.Outcome{}, err
		}
	}
	if !deleted {
		return report.Outcome{Detail: fmt.Sprintf("%s is already deleted", id)}, nil
	}
	return report.Outcome{Changed: true, Detail: fmt.Sprintf("deleted %s", id)}, nil
}

// deleteVolume deletes a claim whose data is not needed. It first checks that etcd does not list the member or, if the
// cluster is being deleted with its data, that no pods run.
func (c *cluster) deleteVolume(ctx context.Context, a decide.DeleteVolume) (report.Outcome, error) {
	check := c.memberGone
	if c.target.Cluster.Spec.Lifecycle == v1alpha1.LifecycleDeleted {
		check = func(ctx context.Context, _ int) error { return c.nothingRuns(ctx) }
	}
	if err := check(ctx, a.Ordinal); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	name := objects.VolumeClaimName(c.target.Cluster.Name, a.Ordinal)
	return c.delete(ctx, objects.Identity{Kind: "PersistentVolumeClaim", Name: name}, a.VolumeUID)
}

// memberGone returns nil if the volume with the given ordinal may be deleted: etcd's linearizable member list contains
// no member that has or may have this ordinal, and the volume does not have to be kept.
func (c *cluster) memberGone(ctx context.Context, ordinal int) error {
	now := c.askAgain(ctx).Membership
	if !now.Known {
		return fmt.Errorf("etcd does not return its member list: %s", now.Why)
	}
	if now.ClusterID != c.state.Record.ClusterID {
		return fmt.Errorf("etcd reports cluster %s, but the record contains %s", now.ClusterID,
			c.state.Record.ClusterID)
	}
	for _, m := range now.Members {
		switch n, ours := c.state.OrdinalOf(m); {
		case ours && n == ordinal:
			return fmt.Errorf("etcd still lists %s (%s)", c.state.ReplicaName(ordinal), m.ID)
		case !ours && m.Name == "":
			return fmt.Errorf("etcd lists a member (%s) that has not started and may be %s", m.ID,
				c.state.ReplicaName(ordinal))
		}
	}
	kept, err := c.stillKept(ctx, ordinal, now)
	if err == nil && kept {
		err = fmt.Errorf("not all members are healthy, and %s may have better data",
			c.state.ReplicaName(ordinal))
	}
	return err
}

// stillKept reports whether a removed member's volume must be kept because it belongs to a lost cluster, given the
// membership and the members' current claims.
func (c *cluster) stillKept(ctx context.Context, ordinal int, now decide.Membership) (bool, error) {
	ofLost := func(gone decide.RemovedMember) bool { return gone.Ordinal == ordinal && gone.Kept() }
	if !slices.ContainsFunc(c.state.Record.Removed, ofLost) {
		return false, nil
	}
	again := c.state
	again.Membership = now
	var err error
	again.Replicas, err = c.volumesNow(ctx, c.ordinalsBeside(0, now))
	return again.Keeps(ordinal), err
}

// nothingRuns returns nil if the cluster has no pods and no StatefulSet that would create pods.
func (c *cluster) nothingRuns(ctx context.Context) error {
	namespace := c.target.Cluster.Namespace
	found, err := c.kube().Look(ctx, "StatefulSet", namespace, c.names.StatefulSet)
	if err != nil {
		return err
	}
	if set, there := found.(*appsv1.StatefulSet); there && (set.Spec.Replicas == nil || *set.Spec.Replicas > 0) {
		return fmt.Errorf("StatefulSet %s is not scaled to 0", set.Name)
	}
	runs, err := c.kube().HasPods(ctx, namespace, objects.SelectorString(c.target.Cluster.Name))
	if err == nil && runs {
		err = fmt.Errorf("pods of %s still exist", c.target.Key())
	}
	return err
}

// deleteObjects deletes the objects that Quorate created, except volumes and the custom resource. It deletes the record
// last, because the next pass needs the record if this pass does not finish.
func (c *cluster) deleteObjects(ctx context.Context) (report.Outcome, error) {
	err := c.nothingRuns(ctx)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", decide.DeleteObjects{}, err)
	}
	var done []string
	for _, id := range slices.Backward(c.identities()) {
		object := c.own.Objects[id.Kind+"/"+id.Name]
		if object == nil {
			continue
		}
		var outcome report.Outcome
		if outcome, err = c.delete(ctx, id, string(object.GetUID())); err != nil {
			break
		}
		if outcome.Changed {
			done = append(done, id.String())
		}
	}
	if len(done) == 0 && err == nil {
		return report.Outcome{Detail: "all objects are already deleted"}, nil
	}
	return report.Outcome{Changed: len(done) > 0, Detail: "deleted " + strings.Join(done, ", ")}, err
}

// deleteSurplus deletes objects that are no longer declared. It returns a description of the deleted objects, or "".
func (c *cluster) deleteSurplus(ctx context.Context) (string, error) {
	var done []string
	for _, object := range c.surplus() {
		outcome, err := c.delete(ctx, object.Identity, object.uid)
		if outcome.Changed {
			done = append(done, outcome.Detail)
		}
		if err != nil {
			return strings.Join(done, "; "), err
		}
	}
	return strings.Join(done, "; "), nil
}
