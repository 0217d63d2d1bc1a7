package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startRestore creates the claim of the first member's volume, if missing, and the Job that fills it, after checking
// again that the cluster is still being restored.
func (c *cluster) startRestore(ctx context.Context, a decide.StartRestore) (report.Outcome, error) {
	if err := c.stillRestoring(ctx); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	in, err := c.input(c.state.Record)
	if err != nil {
		return report.Outcome{}, err
	}
	if declared := objects.RestoreOf(c.buildable); declared.Digest != a.Digest {
		return report.Outcome{}, fmt.Errorf("%s: the spec now requests %s", a, declared.Digest)
	}
	for _, look := range []func(context.Context) (string, error){c.stillWorks, c.claimsInUse} {
		if uses, err := look(ctx); uses != "" || err != nil {
			return report.Outcome{Detail: uses}, err
		}
	}
	in.BackupImage = c.live.options.BackupImage
	claim, err := c.seedClaim(ctx, in, decide.SeedOrdinal)
	if err != nil {
		return report.Outcome{}, err
	}
	job, err := objects.RestoreJob(in, string(claim.UID))
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	if _, err := c.applyOne(ctx, job); err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "started " + job.String()}, nil
}

// stillWorks returns a message that names a pod of an earlier Job that may still write to a member's volume, or "". It
// lists the pods again, because the observed list may date from long before the Job was found to be gone.
func (c *cluster) stillWorks(ctx context.Context) (string, error) {
	pods, err := c.kube().Pods(ctx, c.target.Cluster.Namespace, objects.VolumeWorkers(c.target.Cluster.Name))
	if err != nil {
		return "", err
	}
	for i := range pods {
		if c.mayWrite(&pods[i]) {
			return fmt.Sprintf("not yet: pod %s of an earlier Job still exists", pods[i].Name), nil
		}
	}
	return "", nil
}

// claimsInUse returns a message that explains why the source's claims must not be mounted yet, or "".
func (c *cluster) claimsInUse(ctx context.Context) (string, error) {
	from, namespace := c.buildable.Spec.Restore.From.Claims, c.target.Cluster.Namespace
	if from == nil {
		return "", nil
	}
	for _, name := range from.Names {
		claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", namespace, string(name))
		switch {
		case err != nil:
			return "", err
		case string(name) == objects.VolumeClaimName(c.state.Name, decide.SeedOrdinal):
			return fmt.Sprintf("not yet: claim %s belongs to the new cluster. Specify only the source's "+
				"claims", name), nil
		case claim == nil || claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("not yet: claim %s does not exist or is being deleted", name), nil
		}
	}
	pods, err := c.kube().Pods(ctx, namespace, "")
	if err != nil {
		return "", err
	}
	for i := range pods {
		if name := usedClaim(&pods[i], from.Names); name != "" && podstate.Runs(&pods[i]) {
			return fmt.Sprintf("not yet: pod %s uses claim %s. Stop the source, and make sure that nothing starts it "+
				"again", pods[i].Name, name), nil
		}
	}
	return "", nil
}

// usedClaim returns the first of these claims that a pod uses, or "".
func usedClaim(pod *corev1.Pod, names []v1alpha1.ClaimName) v1alpha1.ClaimName {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		if name := v1alpha1.ClaimName(volume.PersistentVolumeClaim.ClaimName); slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// stillRestoring returns an error if the record has changed or does not describe a restore in progress.
func (c *cluster) stillRestoring(ctx context.Context) error {
	if err := c.recordAsSeen(ctx); err != nil {
		return err
	}
	if !c.state.Record.Restoring() {
		return errors.New("the cluster is not being restored from a backup")
	}
	return nil
}

// recordAsSeen returns an error if the record has changed since it was observed. This prevents a delayed pass from
// recreating a volume that a member has since lost.
func (c *cluster) recordAsSeen(ctx context.Context) error {
	now, err := c.kube().Look(ctx, "ConfigMap", c.target.Cluster.Namespace, c.names.ConfigMap)
	if err != nil {
		return err
	}
	seen := c.own.Objects["ConfigMap/"+c.names.ConfigMap]
	if now == nil || seen == nil || now.GetResourceVersion() != seen.GetResourceVersion() {
		return fmt.Errorf("ConfigMap %s: %w", c.names.ConfigMap, kube.ErrConflict)
	}
	return nil
}

// seedClaim returns the claim of the member with which the cluster starts, and creates it if necessary.
func (c *cluster) seedClaim(
	ctx context.Context, in objects.Input, ordinal int,
) (*corev1.PersistentVolumeClaim, error) {
	wanted := objects.SeedClaim(in, ordinal)
	for made := false; ; made = true {
		found, err := c.kube().Look(ctx, wanted.Kind, c.target.Cluster.Namespace, wanted.Name)
		if err != nil {
			return nil, err
		}
		if claim, there := found.(*corev1.PersistentVolumeClaim); there {
			token := objects.ReadMetadata(claim.Annotations).Token
			if token != in.Record.Token || claim.DeletionTimestamp != nil {
				return nil, fmt.Errorf("%s exists but must not be filled: it was created for another cluster or is "+
					"being deleted", wanted)
			}
			return claim, nil
		}
		if made {
			return nil, fmt.Errorf("%s was created but has been deleted", wanted)
		}
		if _, err := c.applyOne(ctx, wanted); err != nil {
			return nil, err
		}
	}
}

// stopRestore deletes the restore Job, but only if it is the observed Job.
func (c *cluster) stopRestore(ctx context.Context, a decide.StopRestore) (report.Outcome, error) {
	return c.deleteVolumeJob(ctx, a, c.names.Restore(), a.JobUID)
}

// deleteVolumeJob deletes a Job that works on a volume, but only if it is the observed Job.
func (c *cluster) deleteVolumeJob(
	ctx context.Context, a decide.Action, id objects.Identity, uid string,
) (report.Outcome, error) {
	job := c.volumeJob(id)
	if job == nil || string(job.UID) != uid {
		return report.Outcome{}, fmt.Errorf("%s: the Job has been replaced", a)
	}
	return c.deleteJob(ctx, job)
}

func (c *cluster) deleteJob(ctx context.Context, job *batchv1.Job) (report.Outcome, error) {
	if err := c.stillOurs(ctx); err != nil {
		return report.Outcome{}, err
	}
	deleted, err := c.kube().Delete(ctx, "Job", job)
	return report.Outcome{Changed: deleted, Detail: "deleted Job " + job.Name}, err
}

// finishRestore records that the volume has been filled, after checking again that it is the same volume. It writes the
// record only if the record has not changed since it was observed.
func (c *cluster) finishRestore(ctx context.Context, a decide.FinishRestore) (report.Outcome, error) {
	name := objects.VolumeClaimName(c.state.Name, 0)
	claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil {
		return report.Outcome{}, err
	}
	if claim == nil || string(claim.GetUID()) != a.VolumeUID || claim.GetDeletionTimestamp() != nil {
		return report.Outcome{Detail: "the volume has been replaced"}, nil
	}
	in, err := c.input(decide.RestoredRecord(c.state, a))
	if err != nil {
		return report.Outcome{}, err
	}
	in.WithoutSecrets = true
	return c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" })
}
