package clusters

import (
	"context"
	"fmt"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startRecovery writes down that a new cluster is being made, over the record that was observed, marks what the
// lost one leaves, and then starts the Job that makes it, after looking once more that nothing runs. The record
// goes with the custom resource, whoever deletes that; the marks stay.
func (c *cluster) startRecovery(ctx context.Context, a decide.StartRecovery) (report.Outcome, error) {
	order := objects.RecoveryOf(c.buildable)
	if order.Digest != a.Digest || order.Ordinal != a.Ordinal {
		return report.Outcome{}, fmt.Errorf("%s: %s is declared", a, order.Digest)
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

// volumeToRecover is the volume that the new cluster begins in, the one that was seen. Where there was none, and it
// is made of a backup, the claim of one is made.
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

// markLost marks the claims that are left of a lost cluster: whoever loses the record, or puts it back, no member is
// to start on them.
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

// unmark takes wrong marks off.
func (c *cluster) unmark(ctx context.Context) (done string, err error) {
	for _, r := range c.state.WrongMarks() {
		if err := c.stillOurs(ctx); err != nil {
			return done, err
		}
		if err := c.mark(ctx, r, 0); err != nil {
			return done, err
		}
		done = "took marks off volume claims"
	}
	return done, nil
}

// mark marks the claim that was seen in a slot as left of that cluster; of none if it is zero.
func (c *cluster) mark(ctx context.Context, r decide.Replica, lost decide.ID) error {
	text := ""
	if lost != 0 {
		text = lost.String()
	}
	_, err := c.kube().AnnotateClaim(ctx, c.target.Cluster.Namespace, objects.VolumeClaimName(c.state.Name, r.Ordinal),
		r.VolumeUID, map[string]string{objects.AnnotationLostCluster: text})
	return err
}

// volumesBack names a claim that is there by now, and was not when it was decided that nobody else is left
// who may have more: of a member that nobody has given up. It is empty if there is none.
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
			return fmt.Sprintf("not yet: PersistentVolumeClaim %s is there by now", name), nil
		}
	}
	return "", nil
}

// holdsVolume is kube.ErrConflict if the volume in a slot is another one by now, or is being deleted.
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

// finishRecovery writes down that the volume holds the new cluster, after looking once more whether it is
// that one, and that nothing runs. It is written only over the record that was observed.
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
