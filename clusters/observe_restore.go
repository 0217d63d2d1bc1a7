package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/reconcile/decide"
)

// findRestore reads the state of the restore Job if the cluster is being created from a backup or has no record, or if
// the volume that the Job fills is being deleted.
func (c *cluster) findRestore(ctx context.Context) error {
	lost := len(c.state.Record.Members) == 0
	seed := c.own.Claim(objects.VolumeClaimName(c.state.Name, decide.SeedOrdinal))
	if !lost && !c.state.Record.Restoring() &&
		(seed == nil || seed.DeletionTimestamp == nil) {
		return nil
	}
	if c.state.Restore.Hidden = c.jobsHidden(); c.state.Restore.Hidden != "" {
		return nil
	}
	job, pods, err := c.findVolumeJob(ctx, c.names.Restore(), &c.state.Restore.JobSight)
	if err == nil && job != nil {
		seen := podstate.RestoreJob(job, pods, c.state.Now)
		c.state.Restore.Job = &seen
	}
	return err
}

// findRecovery reads the state of the recovery Job if a recovery is recorded or requested, the Job or one of its pods
// was listed, or the record is lost.
func (c *cluster) findRecovery(ctx context.Context) error {
	looks := c.state.Record.Recovering() || c.state.Declared.Recovery.ClusterID != 0 ||
		c.own.Objects["Job/"+c.names.RecoveryJob] != nil || slices.ContainsFunc(c.own.VolumePods, c.recovers)
	if !looks && len(c.state.Record.Members) > 0 {
		return nil
	}
	if c.state.Recovery.Hidden = c.jobsHidden(); c.state.Recovery.Hidden != "" {
		return nil
	}
	job, pods, err := c.findVolumeJob(ctx, c.names.Recovery(), &c.state.Recovery.JobSight)
	if err == nil && job != nil {
		seen := podstate.RecoveryJob(job, pods, c.state.Now)
		c.state.Recovery.Job = &seen
	}
	return err
}

// recovers reports whether a pod belongs to a recovery Job, even if the Job has been deleted.
func (c *cluster) recovers(pod *corev1.Pod) bool {
	return pod.Labels[batchv1.JobNameLabel] == c.names.RecoveryJob
}

// restores reports whether a pod belongs to the observed restore Job.
func (c *cluster) restores(pod *corev1.Pod) bool {
	job, owner := c.state.Restore.Job, metav1.GetControllerOf(pod)
	return job != nil && owner != nil && string(owner.UID) == job.UID
}

// findVolumeJob looks up a Job that works on a volume, and its pods.
func (c *cluster) findVolumeJob(
	ctx context.Context, id objects.Identity, seen *decide.JobSight,
) (job *batchv1.Job, pods []*corev1.Pod, err error) {
	object, err := c.kube().Look(ctx, id.Kind, c.target.Cluster.Namespace, id.Name)
	if err != nil {
		return nil, nil, err
	}
	job, _ = object.(*batchv1.Job)
	if job != nil && !c.madeForThis(job) {
		seen.Foreign = fmt.Sprintf("%s exists but was not created by Quorate for this cluster", id)
		return nil, nil, nil
	}
	for _, pod := range c.own.VolumePods {
		switch {
		case job != nil && metav1.IsControlledBy(pod, job):
			pods = append(pods, pod)
		case c.restores(pod): // a recovery does not have to wait for this pod
		case c.mayWrite(pod):
			seen.Stopping = append(seen.Stopping, pod.Name)
		}
	}
	if job != nil {
		c.own.Objects[id.Kind+"/"+id.Name] = job
	}
	return job, pods, nil
}

// mayWrite reports whether a pod has not ended and uses a member's volume.
func (c *cluster) mayWrite(pod *corev1.Pod) bool {
	return c.hasVolume(pod) && podstate.Runs(pod)
}

// hasVolume reports whether a pod mounts a member's volume. A pod that merely has the labels cannot write to a volume.
func (c *cluster) hasVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if v.PersistentVolumeClaim == nil {
			return false
		}
		name, claim := strings.CutPrefix(v.PersistentVolumeClaim.ClaimName, objects.VolumeClaimPrefix)
		_, ours := c.state.Ordinal(name)
		return claim && ours
	})
}

// jobsHidden returns the reason why Jobs could not be listed, or "".
func (c *cluster) jobsHidden() string {
	if c.hiddenBackups == nil {
		return ""
	}
	return c.hiddenBackups.Error()
}

// madeForThis reports whether a pass created a Job for this custom resource.
func (c *cluster) madeForThis(job *batchv1.Job) bool {
	return c.own.Custom != nil && metav1.IsControlledBy(job, c.own.Custom) && kube.Applied(job)
}

// volumeJob returns the named observed Job of this cluster, or nil.
func (c *cluster) volumeJob(id objects.Identity) *batchv1.Job {
	if job := inventory.Get[*batchv1.Job](c.own, id.Kind, id.Name); job != nil && c.madeForThis(job) {
		return job
	}
	return nil
}
