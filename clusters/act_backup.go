package clusters

import (
	"context"
	"fmt"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startBackup makes the Job that backs up. One of that name is the one that another pass has made.
func (c *cluster) startBackup(ctx context.Context, a decide.StartBackup) (report.Outcome, error) {
	in, err := c.input(c.state.Record)
	if err != nil {
		return report.Outcome{}, err
	}
	job, err := objects.BackupJob(in, a.Generation)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	there, err := c.kube().Look(ctx, job.Kind, c.target.Cluster.Namespace, job.Name)
	switch {
	case err != nil:
		return report.Outcome{}, err
	case there != nil:
		return report.Outcome{Detail: job.String() + " is there already"}, nil
	}
	if err := c.applyOne(ctx, job); err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "started " + job.String()}, nil
}
