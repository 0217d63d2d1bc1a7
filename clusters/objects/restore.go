package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// RestoreContainer is the container of a pod that restores.
const RestoreContainer = "restore"

// Annotations of the Job that restores.
const (
	// AnnotationRestoreFrom is the backup that it restores, in words.
	AnnotationRestoreFrom = "etcd.quorate.dev/restore-from"
	// AnnotationRestoreDigest is the RestoreDigest of the declaration that it was started for.
	AnnotationRestoreDigest = "etcd.quorate.dev/restore-digest"
	// AnnotationVolume is the UID of the claim of the volume that it fills.
	AnnotationVolume = "etcd.quorate.dev/volume"
)

const (
	componentRestore = "restore"
	// seedOrdinal is the slot of the member that is restored. The others join it.
	seedOrdinal = 0
)

// WorksOnVolume reports whether an object with these labels works on the volume of a member, to restore or
// to recover it.
func WorksOnVolume(labels map[string]string) bool {
	return labels[labelComponent] == componentRestore || labels[labelComponent] == componentRecovery
}

func restoreLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, map[string]string{labelComponent: componentRestore})
	return labels
}

// RestoreOf is the backup that a declaration wants a new cluster to be made from; zero if it wants none.
func RestoreOf(c *v1alpha1.EtcdCluster) decide.RestoreSource {
	r := c.Spec.Restore
	if r == nil {
		return decide.RestoreSource{}
	}
	backup, store := r.Backup, r.From.Location()
	if backup == "" {
		backup = "the newest backup"
	}
	if endpoint := r.From.Endpoint(); endpoint != "" {
		store += " at " + endpoint
	}
	deadline, _ := time.ParseDuration(string(r.Deadline)) // it is checked wherever a declaration comes in
	return decide.RestoreSource{
		Deadline: deadline,
		From:     fmt.Sprintf("%s of %s from %s", backup, restoredCluster(c), store),
		Digest:   restoreDigest(c.Spec),
	}
}

// restoreDigest is of what the Job is made from: one that was started for something else is started
// again. The size of volumes is left out, since that of the StatefulSet cannot be changed.
func restoreDigest(spec v1alpha1.EtcdClusterSpec) string {
	text, err := json.Marshal([]any{spec.Restore, spec.Version, spec.Etcd.Quota, spec.TLS.Mode})
	if err != nil {
		panic(fmt.Sprintf("encode spec.restore: %v", err)) // plain data: there is nothing that cannot be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// restoredCluster is the one whose backup it is, as NAMESPACE/NAME.
func restoredCluster(c *v1alpha1.EtcdCluster) string {
	if c.Spec.Restore.Cluster != "" {
		return c.Spec.Restore.Cluster
	}
	return clusterKey(c)
}

// SeedClaim is the volume claim of the first member, as the StatefulSet would make it.
func SeedClaim(in Input) Object {
	c := in.Cluster
	name := VolumeClaimName(c.Name, seedOrdinal)
	template := volumeClaim(in)
	return Object{Identity{"PersistentVolumeClaim", name}, applycorev1.PersistentVolumeClaim(name, c.Namespace).
		WithLabels(template.Labels).
		WithAnnotations(template.Annotations).
		WithSpec(template.Spec)}
}

// RestoreJob is the Job that fills the volume of the first member, the claim of that UID.
func RestoreJob(in Input, volumeUID string) (Object, error) {
	c := in.Cluster
	if c.Spec.Restore == nil || in.BackupImage == "" || c.UID == "" {
		return Object{}, fmt.Errorf("build the restore of %s/%s: none is declared, or no image for it is known",
			c.Namespace, c.Name)
	}
	pod, err := restorePod(in)
	if err != nil {
		return Object{}, fmt.Errorf("build the restore of %s/%s: %w", c.Namespace, c.Name, err)
	}
	source := RestoreOf(c)
	id := NamesOf(c.Name).Restore()
	return Object{id, applybatchv1.Job(id.Name, c.Namespace).
		WithLabels(restoreLabels(c.Name)).
		WithAnnotations(map[string]string{AnnotationRestoreFrom: source.From, AnnotationRestoreDigest: source.Digest,
			AnnotationVolume: volumeUID}).
		WithOwnerReferences(owner(c)).
		WithSpec(applybatchv1.JobSpec().
			WithBackoffLimit(backupAttempts).
			WithPodFailurePolicy(storeFailures()).
			WithActiveDeadlineSeconds(int64(source.Deadline.Seconds())).
			WithTTLSecondsAfterFinished(startedKept).
			WithTemplate(applycorev1.PodTemplateSpec().
				WithLabels(withStore(restoreLabels(c.Name), c.Spec.Restore.From)).
				WithSpec(pod)))}, nil
}

// restorePod runs where the first member may: where its volume is made is where that will be.
func restorePod(in Input) (*applycorev1.PodSpecApplyConfiguration, error) {
	c := in.Cluster
	r := c.Spec.Restore
	spec := storePod(c, r.From).
		WithVolumes(applycorev1.Volume().WithName(volumeData).
			WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
				WithClaimName(VolumeClaimName(c.Name, seedOrdinal)))).
		WithVolumes(storeVolumes(r.From)...)
	mounts := []*applycorev1.VolumeMountApplyConfiguration{mountAt(volumeData, dataMount)}
	if r.IdentitySecretName != "" {
		spec.WithVolumes(secretFiles(volumeIdentity, r.IdentitySecretName, ageIdentity))
		mounts = append(mounts, mountAt(volumeIdentity, identityMount).WithReadOnly(true))
	}
	step := storeStep(in, r.From, RestoreContainer, restoreArgs(in), mounts...)
	step.Resources = restoreResources(c)
	spec.WithContainers(step)
	return spec, placement(c, spec)
}

// restoreResources are those of the member that is to run there: a volume may belong to the node on which
// it is first used. Where none are declared, there is enough for the pages of a database to be written;
// with little, a large one takes long.
func restoreResources(c *v1alpha1.EtcdCluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	if declared := memberResources(c); declared != nil {
		return declared
	}
	return applycorev1.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})
}

func restoreArgs(in Input) []string {
	c := in.Cluster
	r := c.Spec.Restore
	quota := quotaOf(c.Spec)
	args := []string{"restore", restoredCluster(c)}
	if r.Backup != "" {
		args = append(args, r.Backup)
	}
	args = append(args, "--from="+storeURL(r.From), "--data-dir="+dataDir,
		"--name="+PodName(c.Name, seedOrdinal), "--peer-url="+PeerURL(c, seedOrdinal),
		"--initial-cluster-token="+escaped(clusterToken(in)), "--revision-bump="+strconv.FormatInt(r.RevisionBump, 10),
		"--etcd-version="+c.Spec.Version, "--quota="+strconv.FormatInt(quota.Value(), 10),
		"--once", "--result="+corev1.TerminationMessagePathDefault)
	if r.IdentitySecretName != "" {
		args = append(args, "--identity="+identityMount+"/"+ageIdentity)
	}
	return append(args, storeArgs(r.From, r.Deadline)...)
}
