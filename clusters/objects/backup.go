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
)

// The containers of a pod that backs up, in the order in which they run.
const (
	BackupContainer = "backup"
	VerifyContainer = "verify"
	PruneContainer  = "prune"
	RereadContainer = "reread"
)

const (
	// componentBackup is the component of pods that back up, which no selector of members has.
	componentBackup = "backup"
	// ExitDoubtful is the exit code of a step that finds a backup suspect or damaged.
	ExitDoubtful = 4
	// AnnotationGeneration is on a Job that a pass has started: the generation of the custom resource
	// that it was started for.
	AnnotationGeneration = "etcd.quorate.dev/generation"

	// AnnotationBackupTo is on Jobs that back up: the place where to.
	AnnotationBackupTo = "etcd.quorate.dev/backup-to"

	// backupAttempts is how often Kubernetes tries a pod again, after 10 s and then twice as long each
	// time, as long as the deadline lets it.
	backupAttempts = 5
	// backupsKept is how many Jobs of each outcome are kept to be looked at.
	backupsKept = 3
	// startedKept is for how many seconds a Job that a pass has started is kept.
	startedKept = 24 * 60 * 60
)

// backupLabels are those of Jobs that back up, and of their pods.
func backupLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, BackupSelector(cluster))
	return labels
}

// BackupSelector returns the labels that the pods of backups have and no other pod has.
func BackupSelector(cluster string) map[string]string {
	return map[string]string{LabelCluster: cluster, labelComponent: componentBackup}
}

// IsBackup reports whether an object with these labels is of a backup, or of the drill of one, not of a member.
func IsBackup(labels map[string]string) bool {
	return labels[labelComponent] == componentBackup || labels[labelComponent] == componentDrill
}

// BackupJobName is the name of the Job that a pass starts for a generation of the custom resource.
func BackupJobName(cluster string, generation int64) string {
	return NamesOf(cluster).BackupCronJob + "-gen" + strconv.FormatInt(generation, 10)
}

// BackupSchedule is the schedule of the backups, without which there is none.
func BackupSchedule(c *v1alpha1.EtcdCluster) (schedule.Schedule, error) {
	b := c.Spec.Backup
	return schedule.Parse(b.Schedule, b.TimeZone, c.Namespace+"/"+c.Name)
}

// BackupDeadline is how long a backup may take; zero if what is declared is no duration.
func BackupDeadline(b *v1alpha1.BackupSpec) time.Duration {
	deadline, _ := time.ParseDuration(string(b.Deadline)) // it is checked wherever a declaration comes in
	return deadline
}

// VerifiesBackups reports whether backups are read back: those that are encrypted need an identity.
func VerifiesBackups(b *v1alpha1.BackupSpec) bool {
	return b.Verify != v1alpha1.VerifyNever && (len(b.Recipients) == 0 || b.IdentitySecretName != "")
}

// backupCronJob has Kubernetes back up by the schedule, whether or not a pass runs: it makes up for
// the newest backup that it could not begin in time, and runs one at a time. It is nil where none
// can be made from the declaration, or nobody has said with which image.
func backupCronJob(in Input) *applybatchv1.CronJobApplyConfiguration {
	c := in.Cluster
	if c.Spec.Backup == nil || in.BackupImage == "" {
		return nil
	}
	when, err := BackupSchedule(c)
	if err != nil {
		return nil // it is a problem of the declaration, of which nothing is applied
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

// BackupJob is the Job that a pass starts for a generation of the custom resource.
func BackupJob(in Input, generation int64) (Object, error) {
	c := in.Cluster
	if c.Spec.Backup == nil || in.BackupImage == "" || c.UID == "" {
		return Object{}, fmt.Errorf("build a backup of %s/%s: no backups are declared, or no image for them is known",
			c.Namespace, c.Name)
	}
	name := BackupJobName(c.Name, generation)
	return Object{Identity{"Job", name}, applybatchv1.Job(name, c.Namespace).
		WithLabels(backupLabels(c.Name)).
		WithAnnotations(map[string]string{AnnotationGeneration: strconv.FormatInt(generation, 10),
			AnnotationBackupTo: c.Spec.Backup.To.Place()}).
		WithOwnerReferences(owner(c)).
		WithSpec(backupJobSpec(in).WithTTLSecondsAfterFinished(startedKept))}, nil
}

// jobDeadline bounds the Job. What a backup may take is not taken from it by reading stored ones again.
func jobDeadline(b *v1alpha1.BackupSpec) time.Duration {
	deadline := BackupDeadline(b)
	if b.Reread != nil {
		deadline += deadline / rereadPart
	}
	return deadline
}

func backupJobSpec(in Input) *applybatchv1.JobSpecApplyConfiguration {
	return applybatchv1.JobSpec().
		WithBackoffLimit(backupAttempts).
		WithPodFailurePolicy(storeFailures()).
		WithActiveDeadlineSeconds(int64(jobDeadline(in.Cluster.Spec.Backup).Seconds())).
		WithTemplate(applycorev1.PodTemplateSpec().
			WithLabels(withStore(backupLabels(in.Cluster.Name), in.Cluster.Spec.Backup.To)).
			WithSpec(backupPod(in)))
}

// storeFailures says which failures of a pod are no reason to try again: a backup that may hold the
// wrong data, or is damaged, does not become another by that. And a node that is drained is no failure.
func storeFailures() *applybatchv1.PodFailurePolicyApplyConfiguration {
	return applybatchv1.PodFailurePolicy().WithRules(
		applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionIgnore).
			WithOnPodConditions(applybatchv1.PodFailurePolicyOnPodConditionsPattern().
				WithType(corev1.DisruptionTarget).WithStatus(corev1.ConditionTrue)),
		applybatchv1.PodFailurePolicyRule().WithAction(batchv1.PodFailurePolicyActionFailJob).
			WithOnExitCodes(applybatchv1.PodFailurePolicyOnExitCodesRequirement().
				WithOperator(batchv1.PodFailurePolicyOnExitCodesOpIn).WithValues(ExitDoubtful)))
}

// withStore adds to the labels of a pod what its store asks for: Azure's workload identity has one of its
// own.
func withStore(labels map[string]string, to v1alpha1.BackupDestination) map[string]string {
	if to.Azure != nil && to.ServiceAccountName != "" {
		labels["azure.workload.identity/use"] = "true"
	}
	return labels
}

// withoutIdentity keeps the webhooks of EKS and of Azure from giving a container of a pod the identity by which its
// ServiceAccount reaches the store.
func withoutIdentity(to v1alpha1.BackupDestination, container string) map[string]string {
	if to.ServiceAccountName == "" {
		return nil
	}
	return map[string]string{
		"eks.amazonaws.com/skip-containers":       container,
		"azure.workload.identity/skip-containers": container,
	}
}

// backupPod runs one command after the other, each once the one before has succeeded. It satisfies
// the restricted Pod Security Standard. The pods run where those of members may, and no ServiceAccount
// is theirs unless the store knows it.
func backupPod(in Input) *applycorev1.PodSpecApplyConfiguration {
	spec := storePod(in.Cluster, in.Cluster.Spec.Backup.To).WithVolumes(backupVolumes(in)...)
	steps := backupSteps(in)
	last := len(steps) - 1
	return spec.WithInitContainers(steps[:last]...).WithContainers(steps[last])
}

// storePod is a pod that reaches a store, without what runs in it.
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
		panic(fmt.Sprintf("encode a toleration: %v", err)) // plain data: there is nothing that cannot be encoded
	}
	return converted
}

// spoolLimit bounds the volume on which snapshots are checked: a database may be somewhat larger than
// its quota.
func spoolLimit(spec v1alpha1.EtcdClusterSpec) resource.Quantity {
	quota := quotaOf(spec)
	return *resource.NewQuantity(int64(min(2*quota.AsApproximateFloat64(), 1<<62)), resource.BinarySI)
}
