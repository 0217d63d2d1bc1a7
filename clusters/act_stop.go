package clusters

import (
	"context"
	"fmt"
	"strings"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// stopPods scales the StatefulSet to 0. All else of it stays as it was last applied, so nothing
// that it is made from is needed.
func (c *cluster) stopPods(ctx context.Context) (report.Outcome, error) {
	if serves, err := c.servesAfterAll(ctx); serves != "" || err != nil {
		return report.Outcome{Detail: serves}, err
	}
	if going, err := c.stopsOnGoingVolume(ctx); going != "" || err != nil {
		return report.Outcome{Detail: going}, err
	}
	id := objects.Identity{Kind: "StatefulSet", Name: c.names.StatefulSet}
	owned, err := kube.Owned(c.own.Objects[id.Kind+"/"+id.Name])
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", decide.StopPods{}, err)
	}
	scaled, err := objects.ScaledToZero(owned)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", decide.StopPods{}, err)
	}
	if _, err := c.declareOwner(ctx); err != nil {
		return report.Outcome{}, err
	}
	if _, err := c.applyOne(ctx, objects.Object{Identity: id, Apply: scaled}); err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "scaled " + id.String() + " to 0"}, nil
}

// servesAfterAll says who serves by now of a cluster that is to run, and whose pods are stopped only since
// nobody did; empty if nobody does.
func (c *cluster) servesAfterAll(ctx context.Context) (string, error) {
	if c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning {
		return "", nil
	}
	if now := c.askPatiently(ctx).Membership; now.Known || now.HasQuorum() {
		return "not yet: etcd has a quorum by now", nil
	}
	pods, err := c.kube().Pods(ctx, c.target.Cluster.Namespace, objects.SelectorString(c.target.Cluster.Name))
	if err != nil {
		return "", err
	}
	for i := range pods {
		if phase, _ := podstate.Phase(&pods[i]); phase == decide.PodReady {
			return fmt.Sprintf("not yet: Kubernetes finds pod %s ready by now", pods[i].Name), nil
		}
	}
	return "", nil
}

// stopsOnGoingVolume names a claim that is being deleted by now, and that goes with its data as
// soon as the pods are stopped that are about to be; empty if none are, or if git wants the data
// deleted.
func (c *cluster) stopsOnGoingVolume(ctx context.Context) (string, error) {
	spec := c.target.Cluster.Spec
	deletes := spec.Lifecycle == v1alpha1.LifecycleDeleted && spec.Storage.Retention == v1alpha1.RetentionDelete
	if deletes {
		return "", nil
	}
	for _, r := range c.state.Replicas {
		if spec.Lifecycle == v1alpha1.LifecycleRunning && c.state.Declared.Recovery.Lost.Has(r.Ordinal) {
			continue // a person says that nobody needs it
		}
		name := objects.VolumeClaimName(c.target.Cluster.Name, r.Ordinal)
		claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
		if err != nil {
			return "", err
		}
		recorded, _ := c.state.Record.Member(r.Ordinal)
		podGoes := r.PodUID == "" || r.Pod == decide.PodTerminating
		switch {
		case podGoes && (claim == nil || r.VolumeTerminating): // it goes whether pods are stopped or not
		case claim != nil && claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is being deleted", name), nil
		case claim == nil && recorded.VolumeUID != "" && r.Pod != decide.PodPending:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is gone, and its volume goes with the pod", name), nil
		case claim != nil && string(claim.GetUID()) != r.VolumeUID && recorded.VolumeUID != "" && !podGoes &&
			r.Pod != decide.PodPending:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is another one than the pod uses, whose volume goes "+
				"with the pod", name), nil
		}
	}
	return "", nil
}

// stopReplicas takes the files of slots out of the ConfigMap, over the record that was observed, and deletes the pods
// that were seen, after looking once more whether their volumes are marked as left of the lost cluster.
func (c *cluster) stopReplicas(ctx context.Context, a decide.StopReplicas) (report.Outcome, error) {
	for _, ordinal := range a.Ordinals.List() {
		if err := c.stillLost(ctx, c.state.Replica(ordinal)); err != nil {
			return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
		}
	}
	outcome := report.Outcome{}
	if record := decide.StoppedRecord(c.state, a); !record.Equal(c.state.Record) {
		in, err := c.input(record)
		if err != nil {
			return outcome, err
		}
		in.WithoutSecrets = true
		outcome, err = c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" })
		if err != nil {
			return outcome, err
		}
	}
	for _, ordinal := range a.Ordinals.List() {
		r := c.state.Replica(ordinal)
		stopped, err := c.delete(ctx, objects.Identity{Kind: "Pod", Name: c.state.ReplicaName(ordinal)}, r.PodUID)
		if err != nil {
			return outcome, err
		}
		outcome.Changed = outcome.Changed || stopped.Changed
		outcome.Detail = strings.TrimPrefix(outcome.Detail+"; "+stopped.Detail, "; ")
	}
	return outcome, nil
}

// stillLost is kube.ErrConflict if the claim in a slot is another one by now, or is not marked as it was.
func (c *cluster) stillLost(ctx context.Context, r decide.Replica) error {
	name := objects.VolumeClaimName(c.state.Name, r.Ordinal)
	claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil {
		return err
	}
	if claim == nil || string(claim.GetUID()) != r.VolumeUID ||
		objects.LostCluster(claim.GetAnnotations()) != r.LostCluster {
		return fmt.Errorf("PersistentVolumeClaim %s: %w", name, kube.ErrConflict)
	}
	return nil
}
