package clusters

import (
	"context"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startRecovery checks again that no pods run, and records the recovery, unless the record has changed since it was
// observed. It then marks the lost cluster's claims and starts the Job that creates the new cluster. The marks remain
// even if the custom resource, and with it the record, is deleted.
func (c *cluster) startRecovery(ctx context.Context, a decide.StartRecovery) (report.Outcome, error) {
	order := objects.RecoveryOf(c.buildable)
	if order.Digest != a.Digest || order.Ordinal != a.Ordinal {
		return report.Outcome{}, fmt.Errorf("%s: the spec now requests %s", a, order.Digest)
	}
	if err := c.nothingRuns(ctx); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	for _, look := range []func(context.Context) (string, error){c.stillWorks, c.volumesBack} {
		if there, err := look(ctx); there != "" || err != nil {
			return report.Outcome{Detail: there}, err
		}
	}
	volumeUID, err := c.volumeToRecover(ctx, order)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	in, err := c.input(decide.RecoveringRecord(c.state, volumeUID))
	if err != nil {
		return report.Outcome{}, err
	}
	in.WithoutSecrets, in.BackupImage = true, c.live.options.BackupImage
	job, err := objects.RecoveryJob(in, c.state.Objects.RunsVersion)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	if _, err := c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" }); err != nil {
		return report.Outcome{}, err
	}
	if err := c.markLost(ctx, in.Record.Recovery); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	if _, err := c.applyOne(ctx, job); err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "started " + job.String()}, nil
}

// volumeToRecover returns the UID of the observed volume claim with which the new cluster starts. If the claim does
// not exist and the cluster is created from a backup, volumeToRecover creates it.
func (c *cluster) volumeToRecover(ctx context.Context, order decide.RecoveryOrder) (uid string, err error) {
	uid = c.state.Replica(order.Ordinal).VolumeUID
	if uid != "" || order.Backup == "" {
		return uid, c.holdsVolume(ctx, order.Ordinal, uid)
	}
	if err := c.recordAsSeen(ctx); err != nil {
		return "", err
	}
	in, err := c.input(c.state.Record)
	if err != nil {
		return "", err
	}
	claim, err := c.seedClaim(ctx, in, order.Ordinal)
	if err != nil {
		return "", err
	}
	return string(claim.UID), nil
}

// markLost marks a lost cluster's claims, so that members do not start with their data even if the record is later lost
// or restored.
func (c *cluster) markLost(ctx context.Context, begun decide.RecordedRecovery) error {
	for _, m := range c.state.RecoveryMarks(begun) {
		if err := c.stillOurs(ctx); err != nil {
			return err
		}
		if err := c.mark(ctx, m.Replica, m.Lost); err != nil {
			return err
		}
	}
	return nil
}

// unmark removes wrong marks.
func (c *cluster) unmark(ctx context.Context) (done string, err error) {
	for _, r := range c.state.WrongMarks() {
		if err := c.stillOurs(ctx); err != nil {
			return done, err
		}
		if err := c.mark(ctx, r, 0); err != nil {
			return done, err
		}
		done = "removed annotations from PersistentVolumeClaims"
	}
	return done, nil
}

// mark marks the observed claim in a slot as belonging to the lost cluster, or removes the mark if lost is zero.
func (c *cluster) mark(ctx context.Context, r decide.Replica, lost decide.ID) error {
	text := ""
	if lost != 0 {
		text = lost.String()
	}
	_, err := c.kube().AnnotateClaim(ctx, c.target.Cluster.Namespace, objects.VolumeClaimName(c.state.Name, r.Ordinal),
		r.VolumeUID, map[string]string{objects.AnnotationLostCluster: text})
	return err
}

// volumesBack returns a message that names a claim that has appeared since the recovery was decided, or "". The member
// that owns the claim is not declared lost and may have more data.
func (c *cluster) volumesBack(ctx context.Context) (string, error) {
	order := c.state.Declared.Recovery
	for _, m := range c.state.Record.Members {
		survives := m.Ordinal == order.Ordinal && order.Backup == ""
		if survives || order.Lost.Has(m.Ordinal) || m.Mode == decide.Joining {
			continue
		}
		name := objects.VolumeClaimName(c.state.Name, m.Ordinal)
		claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
		if err != nil {
			return "", err
		}
		if claim != nil && string(claim.GetUID()) != c.state.Replica(m.Ordinal).VolumeUID {
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s now exists", name), nil
		}
	}
	return "", nil
}

// holdsVolume returns kube.ErrConflict if the claim in a slot has been replaced or is being deleted.
func (c *cluster) holdsVolume(ctx context.Context, ordinal int, uid string) error {
	name := objects.VolumeClaimName(c.state.Name, ordinal)
	claim, err := c.kube().Look(ctx, "PersistentVolumeClaim", c.target.Cluster.Namespace, name)
	if err != nil {
		return err
	}
	if claim == nil || string(claim.GetUID()) != uid || claim.GetDeletionTimestamp() != nil {
		return fmt.Errorf("PersistentVolumeClaim %s: %w", name, kube.ErrConflict)
	}
	return nil
}

func (c *cluster) stopRecovery(ctx context.Context, a decide.StopRecovery) (report.Outcome, error) {
	return c.deleteVolumeJob(ctx, a, c.names.Recovery(), a.JobUID)
}

// finishRecovery records that the volume contains the new cluster, after checking again that the volume is the same and
// that no pods run. It writes the record only if the record has not changed since it was observed.
func (c *cluster) finishRecovery(ctx context.Context, a decide.FinishRecovery) (report.Outcome, error) {
	if err := c.nothingRuns(ctx); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	if err := c.holdsVolume(ctx, c.state.Record.Recovery.Ordinal, a.VolumeUID); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	if err := c.markLost(ctx, c.state.Record.Recovery); err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	in, err := c.input(decide.RecoveredRecord(c.state, a))
	if err != nil {
		return report.Outcome{}, err
	}
	in.WithoutSecrets = true
	return c.apply(ctx, in, func(o objects.Object) bool { return o.Kind == "ConfigMap" })
}
