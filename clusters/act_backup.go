package clusters

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// startBackup creates the backup Job, unless another pass has already created it.
func (c *cluster) startBackup(ctx context.Context, a decide.StartBackup) (report.Outcome, error) {
	in, err := c.input(c.state.Record)
	if err != nil {
		return report.Outcome{}, err
	}
	job, err := objects.BackupJob(in, a)
	if err != nil {
		return report.Outcome{}, fmt.Errorf("%s: %w", a, err)
	}
	there, err := c.kube().Look(ctx, job.Kind, c.target.Cluster.Namespace, job.Name)
	switch {
	case err != nil:
		return report.Outcome{}, err
	case there != nil && !c.startedFor(there, a):
		return report.Outcome{}, fmt.Errorf("%s: %s exists but was not created by Quorate for this cluster", a, job)
	case there != nil:
		return report.Outcome{Detail: job.String() + " already exists"}, nil
	}
	if _, err := c.applyOne(ctx, job); err != nil {
		return report.Outcome{}, err
	}
	return report.Outcome{Changed: true, Detail: "started " + job.String()}, nil
}

// discardBackup deletes a backup Job, but only if it is the observed Job.
func (c *cluster) discardBackup(ctx context.Context, a decide.DiscardBackup) (report.Outcome, error) {
	for _, job := range c.own.BackupJobs {
		if string(job.UID) == a.JobUID && c.backs(job) {
			return c.deleteJob(ctx, job)
		}
	}
	return report.Outcome{}, fmt.Errorf("%s: the Job was not observed", a)
}

// startedFor reports whether a pass started the Job for this cluster and the action's reason.
func (c *cluster) startedFor(there metav1.Object, a decide.StartBackup) bool {
	job, is := there.(*batchv1.Job)
	if !is || !c.backs(job) {
		return false
	}
	made := podstate.BackupJob(c.target.Cluster.Name, job, nil, c.state.Now)
	return made.Generation == a.Generation && made.DiffersSince.Equal(a.DiffersSince)
}
