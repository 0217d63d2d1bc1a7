package clusters

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
)

// findRestore reads, while the cluster is being made from a backup, or has no record that says whether it
// is, what has become of the Job that does it.
func (c *cluster) findRestore(ctx context.Context) error {
	if lost := len(c.state.Record.Members) == 0; !lost && !c.state.Record.Restoring() {
		return nil
	}
	if c.state.Restore.Hidden = c.jobsHidden(); c.state.Restore.Hidden != "" {
		return nil
	}
	id := c.names.Restore()
	object, err := c.kube().Look(ctx, id.Kind, c.target.Cluster.Namespace, id.Name)
	if err != nil {
		return err
	}
	job, _ := object.(*batchv1.Job)
	if job != nil && !c.restores(job) {
		c.state.Restore.Foreign = fmt.Sprintf("%s is there and was not made by Quorate for this cluster", id)
		return nil
	}
	var own []*corev1.Pod
	for _, pod := range c.own.RestorePods {
		switch {
		case job != nil && metav1.IsControlledBy(pod, job):
			own = append(own, pod)
		case c.fillsSeed(pod) && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			c.state.Restore.Stopping = append(c.state.Restore.Stopping, pod.Name)
		}
	}
	if job != nil {
		c.own.Objects[id.Kind+"/"+id.Name] = job
		seen := podstate.RestoreJob(job, own, c.state.Now)
		c.state.Restore.Job = &seen
	}
	return nil
}

// fillsSeed reports whether a pod has the volume of the first member: one that only has the labels of those
// that restore writes to nothing.
func (c *cluster) fillsSeed(pod *corev1.Pod) bool {
	claim := objects.VolumeClaimName(c.target.Cluster.Name, 0)
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// jobsHidden says why Jobs could not be listed; empty if they were.
func (c *cluster) jobsHidden() string {
	if c.hiddenBackups == nil {
		return ""
	}
	return c.hiddenBackups.Error()
}

// restores reports whether a Job was made by a pass for this custom resource.
func (c *cluster) restores(job *batchv1.Job) bool {
	return c.own.Custom != nil && metav1.IsControlledBy(job, c.own.Custom) && kube.Applied(job)
}

// restoreJob is the Job of this cluster that was seen to restore; nil if there was none.
func (c *cluster) restoreJob() *batchv1.Job {
	if job := inventory.Get[*batchv1.Job](c.own, "Job", c.names.RestoreJob); job != nil && c.restores(job) {
		return job
	}
	return nil
}
