package clusters

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// findUnbound looks for pods that wait forever: they were given a node, which the scheduler does
// only once their claims are bound, and then the claim went and was recreated. The scheduler never
// looks at such a pod again, so a claim that waits for its first consumer never gets a volume. It
// happens when a claim is deleted just as its pod is being scheduled: what protects claims in use
// does not count a pod without a node.
func (c *cluster) findUnbound(ctx context.Context) error {
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		pod, claim := c.own.pod(objects.PodName(c.state.Name, r.Ordinal)), c.own.claim(objects.VolumeClaimName(c.state.Name, r.Ordinal))
		if r.Pod != decide.PodPending || pod.Spec.NodeName == "" || claim == nil || claim.Status.Phase != corev1.ClaimPending {
			continue
		}
		// The claim may have been listed before it was bound, and the pod after it.
		now, err := c.kube().Look(ctx, "PersistentVolumeClaim", claim.Namespace, claim.Name)
		if err != nil {
			return err
		}
		same, found := now.(*corev1.PersistentVolumeClaim)
		r.PodUnbound = found && same.UID == claim.UID && same.Status.Phase == corev1.ClaimPending
	}
	return nil
}
