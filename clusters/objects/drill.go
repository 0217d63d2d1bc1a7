package objects

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/schedule"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// DrillContainer is the last container of a drill pod. The first container, PrepareContainer, restores the backup, and
// the second runs etcd on the restored data.
const DrillContainer = "drill"

const (
	componentDrill = "drill"

	// volumeState passes data from the first container to the last. The etcd container cannot access it.
	volumeState = "state"
	stateMount  = "/state"
	stateLimit  = "16Mi"
)

// drills reports whether drills are declared.
func drills(c *v1alpha1.EtcdCluster) bool { return c.Spec.Backup != nil && c.Spec.Backup.Drill != nil }

func drillLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, map[string]string{labelComponent: componentDrill})
	return labels
}

// DrillSchedule returns the drill schedule. spec.backup.drill must be set.
func DrillSchedule(c *v1alpha1.EtcdCluster) (schedule.Schedule, error) {
	b := c.Spec.Backup
	return schedule.Parse(b.Drill.Schedule, b.TimeZone, c.Namespace+"/"+c.Name)
}

// drillCronJob returns the CronJob that runs drills of the newest backup on schedule. It returns nil if the
// declaration is unusable, the image is unknown, or drill objects must not change.
func drillCronJob(in Input) *applybatchv1.CronJobApplyConfiguration {
	c := in.Cluster
	if !drills(c) || in.BackupImage == "" || in.WithoutDrill {
		return nil
	}
	when, err := DrillSchedule(c)
	if err != nil {
		return nil // the declaration is invalid, so it is not applied
	}
	b := c.Spec.Backup
	return applybatchv1.CronJob(NamesOf(c.Name).DrillCronJob, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(applybatchv1.CronJobSpec().
			WithSchedule(when.Cron()).
			WithTimeZone(b.TimeZone).
			WithSuspend(b.Suspend || pods(in) == 0).
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			WithSuccessfulJobsHistoryLimit(backupsKept).
			WithFailedJobsHistoryLimit(backupsKept).
			WithJobTemplate(applybatchv1.JobTemplateSpec().
				WithLabels(drillLabels(c.Name)).
				WithSpec(applybatchv1.JobSpec().
					WithBackoffLimit(backupAttempts).
					WithPodFailurePolicy(storeFailures()).
					WithActiveDeadlineSeconds(int64(BackupDeadline(b).Seconds())).
					WithTemplate(applycorev1.PodTemplateSpec().
						WithLabels(withStore(drillLabels(c.Name), b.To)).
						WithAnnotations(withoutIdentity(b.To, recoveryEtcd)).
						WithSpec(drillPod(in))))))
}

// drillPod returns the spec of a pod that restores the newest backup, runs an isolated etcd of the declared version on
// it, and queries that etcd. Because git selects the etcd image, the etcd container receives the restored data but
// cannot access the store.
func drillPod(in Input) *applycorev1.PodSpecApplyConfiguration {
	c := in.Cluster
	b := c.Spec.Backup
	work, state := mountAt(volumeWork, workMount), mountAt(volumeState, stateMount)
	mounts := []*applycorev1.VolumeMountApplyConfiguration{work, state}
	if b.IdentitySecretName != "" {
		mounts = append(mounts, mountAt(volumeIdentity, identityMount).WithReadOnly(true))
	}
	prepare := storeStep(in, b.To, PrepareContainer, drillArgs(in, "--prepare"), mounts...)
	drill := storeStep(in, b.To, DrillContainer,
		append(drillArgs(in, "--prepared"), "--result="+corev1.TerminationMessagePathDefault), work, state)
	for _, step := range []*applycorev1.ContainerApplyConfiguration{prepare, drill} {
		step.WithEnv(applycorev1.EnvVar().WithName("TMPDIR").WithValue(workMount))
		step.Resources = restoreResources(c)
		if b.To.ServiceAccountName != "" {
			step.WithVolumeMounts(mountAt(volumeToken, tokenMount).WithReadOnly(true))
		}
	}
	return storePod(c, b.To).
		WithAutomountServiceAccountToken(false). // otherwise, all containers would receive the token
		WithVolumes(drillVolumes(c)...).
		WithInitContainers(prepare, etcdOnCopy(c, c.Spec.Version, work)).
		WithContainers(drill)
}

func drillVolumes(c *v1alpha1.EtcdCluster) []*applycorev1.VolumeApplyConfiguration {
	b, limit := c.Spec.Backup, spoolLimit(c.Spec)
	limit.Mul(2)
	volumes := append(storeVolumes(b.To),
		applycorev1.Volume().WithName(volumeWork).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(limit)),
		applycorev1.Volume().WithName(volumeState).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse(stateLimit))))
	if b.IdentitySecretName != "" {
		volumes = append(volumes, secretFiles(volumeIdentity, b.IdentitySecretName, ageIdentity))
	}
	if b.To.ServiceAccountName != "" {
		volumes = append(volumes, tokenFiles())
	}
	return volumes
}

func drillArgs(in Input, step string) []string {
	c := in.Cluster
	b := c.Spec.Backup
	args := []string{"backups", "drill", clusterKey(c), step, "--from=" + storeURL(b.To), "--dir=" + workMount,
		"--state-dir=" + stateMount, "--etcd-version=" + c.Spec.Version}
	if step == "--prepare" && b.IdentitySecretName != "" {
		args = append(args, "--identity="+identityMount+"/"+ageIdentity)
	}
	return append(args, storeArgs(b.To, b.Deadline)...)
}
