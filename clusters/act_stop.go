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

// stopPods scales the StatefulSet to 0. It keeps the other fields as last applied, so it does not have to build the
// StatefulSet.
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

// servesAfterAll returns a message if a cluster that should run is serving again, and "" otherwise. The pods of such a
// cluster are stopped only because it was not serving.
func (c *cluster) servesAfterAll(ctx context.Context) (string, error) {
	if c.target.Cluster.Spec.Lifecycle != v1alpha1.LifecycleRunning {
		return "", nil
	}
	if now := c.askPatiently(ctx).Membership; now.MayServe() || now.HasQuorum() {
		return "not yet: etcd has quorum again", nil
	}
	pods, err := c.kube().Pods(ctx, c.target.Cluster.Namespace, objects.SelectorString(c.target.Cluster.Name))
	if err != nil {
		return "", err
	}
	for i := range pods {
		if phase, _ := podstate.Phase(&pods[i]); phase == decide.PodReady {
			return fmt.Sprintf("not yet: pod %s is now ready", pods[i].Name), nil
		}
	}
	return "", nil
}

// stopsOnGoingVolume returns a message that names a claim that would be deleted with its data once the pods are
// stopped, or "". It also returns "" if the spec requests deletion of the data.
func (c *cluster) stopsOnGoingVolume(ctx context.Context) (string, error) {
	spec := c.target.Cluster.Spec
	deletes := spec.Lifecycle == v1alpha1.LifecycleDeleted && spec.Storage.Retention == v1alpha1.RetentionDelete
	if deletes {
		return "", nil
	}
	for _, r := range c.state.Replicas {
		if spec.Lifecycle == v1alpha1.LifecycleRunning && c.state.Declared.Recovery.Lost.Has(r.Ordinal) {
			continue // declared lost, so its data is not needed
		}
		name := objects.VolumeClaimName(c.target.Cluster.Name, r.Ordinal)
		claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
		if err != nil {
			return "", err
		}
		recorded, _ := c.state.Record.Member(r.Ordinal)
		podGoes := r.PodUID == "" || r.Pod == decide.PodTerminating
		switch {
		case podGoes && (claim == nil || r.VolumeTerminating): // the volume is deleted in any case
		case claim != nil && claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is being deleted", name), nil
		case claim == nil && recorded.VolumeUID != "" && r.Pod != decide.PodPending:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is missing, and its volume would be deleted "+
				"with the pod", name), nil
		case claim != nil && string(claim.GetUID()) != r.VolumeUID && recorded.VolumeUID != "" && !podGoes &&
			r.Pod != decide.PodPending:
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is not the pod's claim; the pod's volume "+
				"would be deleted with the pod", name), nil
		}
	}
	return "", nil
}

// stopReplicas removes the files of the action's slots from the ConfigMap, unless the record has changed since it was
// observed, and deletes the observed pods. It first checks again that the slots' volumes are marked as belonging to the
// lost cluster.
func (c *cluster) stopReplicas(ctx context.Context, a decide.StopReplicas) (report.Outcome, error) {
	for _, ordinal := range a.Ordinals.List() {
		if err := c.stillLost(ctx, c.state.Replica(ordinal)); err != nil {
			return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
		}
	}
	outcome := report.Outcome{}
	record := decide.StoppedRecord(c.state, a)
	if !record.Equal(c.state.Record) || c.drifted["ConfigMap/"+c.names.ConfigMap] {
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

// stillLost returns kube.ErrConflict if the claim in a slot has been replaced or its mark has changed.
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
