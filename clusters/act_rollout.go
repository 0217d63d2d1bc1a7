package clusters

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startRollout writes the files for the declared pods, and then changes the template of new pods. Existing pods keep
// their own files.
func (c *cluster) startRollout(ctx context.Context, a decide.StartRollout) (report.Outcome, error) {
	wanted := objects.Template{Version: a.Version, SpecHash: a.SpecHash}
	if declared := objects.DeclaredTemplate(&c.target.Cluster); declared != wanted {
		return report.Outcome{}, fmt.Errorf("%s: the spec now declares %s", a, declared)
	}
	found, err := c.kube().Look(ctx, "StatefulSet", c.target.Cluster.Namespace, c.names.StatefulSet)
	if err != nil {
		return report.Outcome{}, err
	}
	set, there := found.(*appsv1.StatefulSet)
	if !there {
		return report.Outcome{}, fmt.Errorf("%s: StatefulSet %s has been deleted", a, c.names.StatefulSet)
	}
	switch runs := objects.ReadMetadata(set.Spec.Template.Annotations).Template(); runs {
	case wanted:
		return report.Outcome{Detail: "already done"}, nil
	case c.runs():
	default:
		return report.Outcome{}, fmt.Errorf("%s: StatefulSet %s now has template %s, not %s", a, c.names.StatefulSet,
			runs, c.runs())
	}
	in, err := c.input(decide.RequiredRecord(c.state, newToken()))
	if err != nil {
		return report.Outcome{}, err
	}
	in.Kept = nil
	return c.apply(ctx, in, rolledOut)
}

// rolledOut reports whether an object is applied when a rollout starts.
func rolledOut(o objects.Object) bool { return o.Kind == "ConfigMap" || o.Kind == "StatefulSet" }

// restartReplica deletes a pod, with a grace period in which etcd can transfer leadership and shut down cleanly. It
// does not delete a serving pod if another member has stopped responding, a broken pod that has recovered, or a pod
// whose volume would be deleted with it.
func (c *cluster) restartReplica(ctx context.Context, a decide.RestartReplica) (report.Outcome, error) {
	name := c.state.ReplicaName(a.Ordinal)
	serves := lists(c.state.Membership, func(m decide.Member) bool { return c.runsIn(m, name) && m.Answers })
	check := c.stillBroken
	if serves {
		check = c.othersStillAnswer
	}
	notYet, err := check(ctx, name, a.PodUID)
	if err == nil && notYet == "" {
		notYet, err = c.goesWithPod(ctx, a.Ordinal)
	}
	if err != nil || notYet != "" {
		return report.Outcome{Detail: notYet}, err
	}
	return c.delete(ctx, objects.Identity{Kind: "Pod", Name: name}, a.PodUID)
}

// runsIn reports whether the named pod runs the member. A guest may have the same name.
func (c *cluster) runsIn(m decide.Member, pod string) bool {
	return m.Name == pod && !c.state.Record.Hosts(m.ID)
}

// goesWithPod returns a message that names the claim in a slot if its volume exists only as long as the pod does,
// because the claim has been deleted or replaced since it was observed. Otherwise, it returns "".
func (c *cluster) goesWithPod(ctx context.Context, ordinal int) (string, error) {
	seen := c.state.Replica(ordinal)
	if seen.VolumeUID == "" || seen.VolumeTerminating {
		return "", nil
	}
	name := objects.VolumeClaimName(c.target.Cluster.Name, ordinal)
	claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil || claim != nil && string(claim.GetUID()) == seen.VolumeUID && claim.GetDeletionTimestamp() == nil {
		return "", err
	}
	return fmt.Sprintf("not yet: PersistentVolumeClaim %s has changed, and its volume may be deleted with the pod",
		name), nil
}

// othersStillAnswer returns the reason why a serving pod must not be restarted now, or "". All other members must
// respond and have ready pods, the other voters and any downgrade must be unchanged, and there must be no sign that
// members hold different data.
func (c *cluster) othersStillAnswer(ctx context.Context, name, _ string) (string, error) {
	now := c.askAgain(ctx).Membership
	if !now.Known || lists(now, func(m decide.Member) bool { return !c.runsIn(m, name) && !m.Answers }) {
		return "etcd: not yet: another member no longer responds", nil
	}
	victim := slices.IndexFunc(now.Members, func(m decide.Member) bool { return c.runsIn(m, name) })
	if victim < 0 || decide.VotersChanged(c.state.Membership, now, now.Members[victim].ID) {
		return "etcd: not yet: the other voters have changed", nil
	}
	if now.Downgrade != c.state.Membership.Downgrade {
		return "etcd: not yet: a downgrade has been enabled or canceled", nil
	}
	again := c.state
	if again.Membership = now; again.InDoubt() {
		return "etcd: not yet: members may hold different data", nil
	}
	if unready, err := c.othersUnready(ctx, name); err != nil || unready != "" {
		return "not yet: " + unready, err
	}
	return "", nil
}

// othersUnready returns a message that names another member's pod that Kubernetes does not report as ready, or "". A
// pod that is being evicted responds until its etcd has transferred leadership.
func (c *cluster) othersUnready(ctx context.Context, name string) (string, error) {
	pods, err := c.kube().Pods(ctx, c.target.Cluster.Namespace, objects.SelectorString(c.target.Cluster.Name))
	if err != nil {
		return "", err
	}
	for _, m := range c.state.MembersInOrder() {
		if c.state.Record.Hosts(m.ID) {
			continue // its pod is unknown
		}
		ready := slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
			phase, _ := podstate.Phase(&pod)
			return pod.Name == m.Name && phase == decide.PodReady
		})
		if m.Name != name && !ready {
			return fmt.Sprintf("pod %s is no longer ready", m.Name), nil
		}
	}
	return "", nil
}

// stillBroken returns the reason why a pod whose member did not respond no longer needs a restart, or "" if the pod is
// still broken. It reads the pod's phase and asks its etcd again, because the pod may have recovered.
func (c *cluster) stillBroken(ctx context.Context, name, uid string) (string, error) {
	found, err := c.kube().Look(ctx, "Pod", c.target.Cluster.Namespace, name)
	if err != nil {
		return "", err
	}
	pod, there := found.(*corev1.Pod)
	if !there || string(pod.UID) != uid {
		return "", nil // nothing left to delete
	}
	ordinal, _ := c.state.Ordinal(name)
	seen := c.state.Replica(ordinal)
	if phase, _ := podstate.Phase(pod); phase != seen.Pod && (phase == decide.PodReady || phase == decide.PodStarting) {
		return fmt.Sprintf("no longer needed: pod %s has come up", name), nil
	}
	answer := c.askPatiently(ctx)
	answers := lists(answer.Membership, func(m decide.Member) bool { return c.runsIn(m, name) && m.Answers })
	if answers || seen.ClusterID == 0 && answer.ClusterIDs[name] != 0 {
		return fmt.Sprintf("no longer needed: etcd in pod %s responds", name), nil
	}
	return "", nil
}
