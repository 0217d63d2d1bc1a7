package clusters

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// findBackups reads the backup Jobs and their results. The newest backup is also read from the status, because Jobs
// are deleted.
func (c *cluster) findBackups() {
	if c.own.Custom != nil {
		c.state.Generation = c.own.Custom.Generation
		c.state.Backups.Last, c.state.Backups.BeforeDeletion = status.LastBackup(c.own.Custom, c.state.Now)
		c.state.Backups.Drill, c.state.Backups.DrillFailed = status.LastDrill(c.own.Custom, c.state.Now)
	}
	if c.hiddenBackups != nil && c.target.Cluster.Spec.Backup != nil {
		c.state.Backups.Hidden = c.hiddenBackups.Error()
		c.state.Unseen = append(c.state.Unseen,
			fmt.Sprintf("its backups could not be listed (%v), so it is not known whether any exist",
				c.hiddenBackups))
		return
	}
	if cronJob := c.backupCronJob(); cronJob != nil {
		b := &c.state.Backups
		b.Since, b.Suspended = cronJob.CreationTimestamp.UTC(), cronJob.Spec.Suspend != nil && *cronJob.Spec.Suspend
		b.To = printable.Line(cronJob.Spec.JobTemplate.Annotations[objects.AnnotationBackupTo])
	}
	pods := podsByOwner(c.own.BackupPods)
	b := &c.state.Backups
	for _, job := range c.own.BackupJobs {
		if c.backs(job) {
			b.Jobs = append(b.Jobs, podstate.BackupJob(c.target.Cluster.Name, job, pods[job.UID], c.state.Now))
		}
	}
	c.findDrills(pods)
	for _, j := range b.Jobs {
		if j.Damaged { // the status may still name this backup
			b.Last, b.BeforeDeletion = unlessOf(j.Name, b.Last), unlessOf(j.Name, b.BeforeDeletion)
		}
	}
	for _, j := range b.Jobs {
		b.Last = decide.NewerBackup(b.Last, j.Backup)
	}
	b.Due, b.Overdue = status.Overdue(&c.target.Cluster, c.own.Custom, c.state)
}

// unlessOf returns b, or nil if the named Job created it.
func unlessOf(job string, b *decide.Backup) *decide.Backup {
	if b != nil && b.Job == job {
		return nil
	}
	return b
}

// findDrills reads the results of drills. The newest drill is also read from the status.
func (c *cluster) findDrills(pods map[types.UID][]*corev1.Pod) {
	b := &c.state.Backups
	cronJob := inventory.Get[*batchv1.CronJob](c.own, "CronJob", c.names.DrillCronJob)
	if cronJob == nil {
		return
	}
	if suspended := cronJob.Spec.Suspend; suspended == nil || !*suspended {
		b.Drills = true
		b.DrillDue = status.DrillDue(&c.target.Cluster, cronJob.CreationTimestamp.UTC(), c.state.Now)
	}
	for _, job := range c.own.BackupJobs {
		if owner := metav1.GetControllerOf(job); owner == nil || owner.Kind != "CronJob" || owner.UID != cronJob.UID {
			continue
		}
		done, failed := podstate.DrillJob(job, pods[job.UID], c.state.Now)
		if done != nil && (b.Drill == nil || done.FinishedAt.After(b.Drill.FinishedAt)) {
			b.Drill = done
		}
		if failed != nil && (b.DrillFailed == nil || failed.At.After(b.DrillFailed.At)) {
			b.DrillFailed = failed
		}
	}
	if b.Drill != nil && b.DrillFailed != nil && b.Drill.FinishedAt.After(b.DrillFailed.At) {
		b.DrillFailed = nil
	}
}

// backs reports whether a Job was created by this cluster's CronJob, or by a pass for this custom resource. It ignores
// labels, because anyone can set them.
func (c *cluster) backs(job *batchv1.Job) bool {
	owner := metav1.GetControllerOf(job)
	if owner == nil {
		return false
	}
	if owner.Kind == v1alpha1.Kind {
		return c.own.Custom != nil && owner.UID == c.own.Custom.UID
	}
	cronJob := c.backupCronJob()
	return owner.Kind == "CronJob" && cronJob != nil && owner.UID == cronJob.UID
}

// backupCronJob returns the backup CronJob, or nil.
func (c *cluster) backupCronJob() *batchv1.CronJob {
	return inventory.Get[*batchv1.CronJob](c.own, "CronJob", c.names.BackupCronJob)
}

// podsByOwner groups pods by the UID of their controller.
func podsByOwner(pods []*corev1.Pod) map[types.UID][]*corev1.Pod {
	owned := map[types.UID][]*corev1.Pod{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			owned[owner.UID] = append(owned[owner.UID], pod)
		}
	}
	return owned
}
