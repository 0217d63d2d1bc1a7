package objects

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/schedule"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// The containers of a backup pod, in the order in which they run.
const (
	BackupContainer = "backup"
	VerifyContainer = "verify"
	PruneContainer  = "prune"
)

const (
	// componentBackup is the component label of backup pods. Member selectors never match it.
	componentBackup = "backup"
	// ExitDoubtful is the exit code of a step that finds that a backup is suspect or damaged.
	ExitDoubtful = 4
	// AnnotationGeneration is the generation of the custom resource for which a pass started the Job.
	AnnotationGeneration = "etcd.quorate.dev/generation"

	// AnnotationDiffersSince is when voters were first found to hold different data, if a pass started the Job for that
	// reason.
	AnnotationDiffersSince = "etcd.quorate.dev/differs-since"

	// AnnotationBackupTo is the destination of a backup Job.
	AnnotationBackupTo = "etcd.quorate.dev/backup-to"

	// backupAttempts is the maximum number of times that Kubernetes retries a pod within the deadline. The delay is 10
	// s at first and doubles each time.
	backupAttempts = 5
	// backupsKept is how many successful Jobs, and how many failed Jobs, are kept for inspection.
	backupsKept = 3
	// startedKept is how long a Job started by a pass is kept after it has finished, in seconds.
	startedKept = 24 * 60 * 60
)

// backupLabels returns the labels of backup Jobs and their pods.
func backupLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, BackupSelector(cluster))
	return labels
}

// BackupSelector returns the labels that only backup pods have.
func BackupSelector(cluster string) map[string]string {
	return map[string]string{LabelCluster: cluster, labelComponent: componentBackup}
}

// IsBackup reports whether an object with these labels belongs to a backup or a drill, not to a member.
func IsBackup(labels map[string]string) bool {
	return labels[labelComponent] == componentBackup || labels[labelComponent] == componentDrill
}

// BackupJobName returns the name of the Job that a pass starts. Like the names of a CronJob's Jobs, it adds at most 11
// characters to the name of the CronJob.
func BackupJobName(cluster string, a decide.StartBackup) string {
	if !a.DiffersSince.IsZero() {
		return NamesOf(cluster).BackupCronJob + "-d" + strconv.FormatInt(a.DiffersSince.Unix(), 36)
	}
	return NamesOf(cluster).BackupCronJob + "-gen" + strconv.FormatInt(a.Generation, 10)
}

// BackupSchedule returns the backup schedule. spec.backup must be set.
func BackupSchedule(c *v1alpha1.EtcdCluster) (schedule.Schedule, error) {
	b := c.Spec.Backup
	return schedule.Parse(b.Schedule, b.TimeZone, c.Namespace+"/"+c.Name)
}

// BackupDeadline returns the maximum duration of a backup, or zero if the declared deadline is invalid.
func BackupDeadline(b *v1alpha1.BackupSpec) time.Duration {
	deadline, _ := time.ParseDuration(string(b.Deadline)) // checked when the declaration is read
	return deadline
}

// VerifiesBackups reports whether backups are read back after they are stored. For encrypted backups, this requires an
// identity.
func VerifiesBackups(b *v1alpha1.BackupSpec) bool {
	return b.Verify != v1alpha1.VerifyNever && (len(b.Recipients) == 0 || b.IdentitySecretName != "")
}

// backupCronJob returns the CronJob that runs backups on schedule, independently of passes. It runs one backup at a
// time. If backups could not start on time, only the newest of them is taken later. backupCronJob returns nil if the
// declaration is unusable or the image is unknown.
func backupCronJob(in Input) *applybatchv1.CronJobApplyConfiguration {
	c := in.Cluster
	if c.Spec.Backup == nil || in.BackupImage == "" {
		return nil
	}
	when, err := BackupSchedule(c)
	if err != nil {
		return nil // the declaration is invalid, so it is not applied
	}
	spec := backupJobSpec(in)
	return applybatchv1.CronJob(NamesOf(c.Name).BackupCronJob, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(applybatchv1.CronJobSpec().
			WithSchedule(when.Cron()).
			WithTimeZone(c.Spec.Backup.TimeZone).
			WithSuspend(c.Spec.Backup.Suspend || pods(in) == 0).
			WithConcurrencyPolicy(batchv1.ForbidConcurrent).
			WithSuccessfulJobsHistoryLimit(backupsKept).
			WithFailedJobsHistoryLimit(backupsKept).
			WithJobTemplate(applybatchv1.JobTemplateSpec().
				WithLabels(backupLabels(c.Name)).
				WithAnnotations(map[string]string{AnnotationBackupTo: c.Spec.Backup.To.Place()}).
				WithSpec(spec)))
}

// BackupJob returns the Job that a pass starts.
func BackupJob(in Input, a decide.StartBackup) (Object, error) {
	c := in.Cluster
	if c.Spec.Backup == nil || in.BackupImage == "" || c.UID == "" {
		return Object{}, fmt.Errorf("build a backup of %s/%s: no backups are declared, or their image is unknown",
			c.Namespace, c.Name)
	}
	name := BackupJobName(c.Name, a)
	annotations := map[string]string{AnnotationBackupTo: c.Spec.Backup.To.Place()}
	if a.DiffersSince.IsZero() {
		annotations[AnnotationGeneration] = strconv.FormatInt(a.Generation, 10)
	} else {
		annotations[AnnotationDiffersSince] = a.DiffersSince.UTC().Format(time.RFC3339)
	}
	return Object{Identity{"Job", name}, applybatchv1.Job(name, c.Namespace).
		WithLabels(backupLabels(c.Name)).
		WithAnnotations(annotations).
		WithOwnerReferences(owner(c)).
		WithSpec(backupJobSpec(in).WithTTLSecondsAfterFinished(startedKept))}, nil
}

func backupJobSpec(in Input) *applybatchv1.JobSpecApplyConfiguration {
	return applybatchv1.JobSpec().
		WithBackoffLimit(backupAttempts).
		WithPodFailurePolicy(storeFailures()).
		WithActiveDeadlineSeconds(int64(BackupDeadline(in.Cluster.Spec.Backup).Seconds())).
		WithTemplate(applycorev1.PodTemplateSpec().
			WithLabels(withStore(backupLabels(in.Cluster.Name), in.Cluster.Spec.Backup.To)).
			WithSpec(backupPod(in)))
}

// storeFailures defines which pod failures are not retried: a damaged backup, or one that may contain the wrong data,
// cannot be fixed by retrying. A node drain does not count as a failure.
func storeFailures() *applybatchv1.PodFailurePolicyApplyConfiguration {
	return applybatchv1.PodFailurePolicy().WithRules(
		applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
				WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
		applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionFailJob).
			WithOnExitCodes(applybatchv1.PodFailurePolicyOnExitCodesRequirement().
				WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(ExitDoubtful)))
}

// withStore adds the pod labels that the store requires, for example for Azure workload identity.
func withStore(labels map[string]string, to v1alpha1.BackupDestination) map[string]string {
	if to.Azure != nil && to.ServiceAccountName != "" {
		labels["azure.workload.identity/use"] = "true"
	}
	return labels
}

// withoutIdentity prevents the EKS and Azure webhooks from giving a container the identity with which the pod's
// ServiceAccount accesses the store.
func withoutIdentity(to v1alpha1.BackupDestination, container string) map[string]string {
	if to.ServiceAccountName == "" {
		return nil
	}
	return map[string]string{
		"eks.amazonaws.com/skip-containers":       container,
		"azure.workload.identity/skip-containers": container,
	}
}

// backupPod returns a pod spec that runs the backup steps in sequence, each after the previous one has succeeded. It
// satisfies the restricted Pod Security Standard. The pod may run on the same nodes as members, and has a
// ServiceAccount only if the store requires one.
func backupPod(in Input) *applycorev1.PodSpecApplyConfiguration {
	spec := storePod(in.Cluster, in.Cluster.Spec.Backup.To).WithVolumes(backupVolumes(in)...)
	steps := backupSteps(in)
	last := len(steps) - 1
	return spec.WithInitContainers(steps[:last]...).WithContainers(steps[last])
}

// storePod returns a pod spec without containers for pods that access a store.
func storePod(c *v1alpha1.EtcdCluster, to v1alpha1.BackupDestination) *applycorev1.PodSpecApplyConfiguration {
	spec := applycorev1.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(to.ServiceAccountName != "").
		WithEnableServiceLinks(false).
		WithSecurityContext(podSecurity())
	if to.ServiceAccountName != "" {
		spec.WithServiceAccountName(to.ServiceAccountName)
	}
	for _, s := range c.Spec.Image.PullSecrets {
		spec.WithImagePullSecrets(applycorev1.LocalObjectReference().WithName(s.Name))
	}
	if len(c.Spec.Pod.NodeSelector) > 0 {
		spec.WithNodeSelector(c.Spec.Pod.NodeSelector)
	}
	for _, t := range c.Spec.Pod.Tolerations {
		spec.WithTolerations(toleration(t))
	}
	return spec
}

func toleration(t v1alpha1.Toleration) *applycorev1.TolerationApplyConfiguration {
	converted, err := convert[*applycorev1.TolerationApplyConfiguration](t)
	if err != nil {
		panic(fmt.Sprintf("encode a toleration: %v", err)) // plain data can always be encoded
	}
	return converted
}

// spoolLimit returns the size limit of the volume on which snapshots are checked. A database may slightly exceed its
// quota.
func spoolLimit(spec v1alpha1.EtcdClusterSpec) resource.Quantity {
	quota := quotaOf(spec)
	return *resource.NewQuantity(int64(min(2*quota.AsApproximateFloat64(), 1<<62)), resource.BinarySI)
}
