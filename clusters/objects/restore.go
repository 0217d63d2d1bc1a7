package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// RestoreContainer is the container that fills the volume in a restore pod.
const RestoreContainer = "restore"

// These are annotations of the restore Job.
const (
	// AnnotationRestoreFrom describes the backup that the Job restores, or the cluster that it copies.
	AnnotationRestoreFrom = "etcd.quorate.dev/restore-from"
	// AnnotationRestoreDigest is the restoreDigest of the declaration for which the Job was started.
	AnnotationRestoreDigest = "etcd.quorate.dev/restore-digest"
	// AnnotationVolume is the UID of the volume claim that the Job fills.
	AnnotationVolume = "etcd.quorate.dev/volume"
)

const componentRestore = "restore"

// WorksOnVolume reports whether an object with these labels restores or recovers a member's volume.
func WorksOnVolume(labels map[string]string) bool {
	return labels[labelComponent] == componentRestore || labels[labelComponent] == componentRecovery
}

// VolumeWorkers returns a selector for the pods that restore or recover a member's volume, including finished pods.
func VolumeWorkers(cluster string) string {
	return fmt.Sprintf("%s,%s in (%s,%s)", SelectorOf(cluster), labelComponent, componentRestore, componentRecovery)
}

func restoreLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, map[string]string{labelComponent: componentRestore})
	return labels
}

// RestoreOf returns the declared source of a new cluster's data, or zero.
func RestoreOf(c *v1alpha1.EtcdCluster) decide.RestoreSource {
	r := c.Spec.Restore
	if r == nil {
		return decide.RestoreSource{}
	}
	deadline, _ := time.ParseDuration(string(r.Deadline)) // checked when the declaration is read
	return decide.RestoreSource{
		Deadline: deadline,
		From:     describeSource(c),
		Digest:   restoreDigest(c.Spec),
	}
}

func describeSource(c *v1alpha1.EtcdCluster) string {
	r := c.Spec.Restore
	if !r.From.Copies() {
		return describeBackup(r.Backup, restoredCluster(c), r.From.BackupDestination)
	}
	text := "the data of cluster " + strings.TrimLeft(r.From.CopiedClusterID(), "0")
	if claims := r.From.Claims; claims != nil {
		return text + " in " + describeClaims(claims.Names)
	}
	text += fmt.Sprintf(" at %s", r.From.Etcd.Endpoints[0])
	if more := len(r.From.Etcd.Endpoints) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func describeClaims(names []v1alpha1.ClaimName) string {
	if len(names) == 1 {
		return "claim " + string(names[0])
	}
	var list []string
	for _, name := range names {
		list = append(list, string(name))
	}
	return "claims " + decide.Enumerate(list)
}

// describeBackup describes a backup of a cluster, or the newest backup if name is empty.
func describeBackup(name, cluster string, from v1alpha1.BackupDestination) string {
	store := from.Location()
	if endpoint := from.Endpoint(); endpoint != "" {
		store += " at " + endpoint
	}
	return fmt.Sprintf("%s of %s from %s", cmp.Or(name, "the newest backup"), cluster, store)
}

// restoreDigest returns a digest of the fields from which the Job is built. A Job with a different digest is restarted.
// The digest excludes the volume size, because it cannot be changed in a StatefulSet.
func restoreDigest(spec v1alpha1.EtcdClusterSpec) string {
	text, err := json.Marshal([]any{spec.Restore, spec.Version, spec.Etcd.Quota, spec.TLS.Mode})
	if err != nil {
		panic(fmt.Sprintf("encode spec.restore: %v", err)) // plain data can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// restoredCluster returns the cluster from which the backup was taken, as NAMESPACE/NAME.
func restoredCluster(c *v1alpha1.EtcdCluster) string {
	if c.Spec.Restore.Cluster != "" {
		return c.Spec.Restore.Cluster
	}
	return clusterKey(c)
}

// SeedClaim returns the volume claim of a cluster's first member, as the StatefulSet would create it.
func SeedClaim(in Input, ordinal int) Object {
	c := in.Cluster
	name := VolumeClaimName(c.Name, ordinal)
	template := volumeClaim(in)
	return Object{Identity{"PersistentVolumeClaim", name}, applycorev1.PersistentVolumeClaim(name, c.Namespace).
		WithLabels(template.Labels).
		WithAnnotations(template.Annotations).
		WithSpec(template.Spec)}
}

// RestoreJob returns the Job that fills the volume of the first member. volumeUID is the UID of the volume claim.
func RestoreJob(in Input, volumeUID string) (Object, error) {
	c := in.Cluster
	if c.Spec.Restore == nil || in.BackupImage == "" || c.UID == "" {
		return Object{}, fmt.Errorf("build the restore of %s/%s: no restore is declared, or its image is unknown",
			c.Namespace, c.Name)
	}
	r := c.Spec.Restore
	pod, err := restorePod(in, filling{
		cluster: restoredCluster(c), backup: r.Backup, from: r.From, identity: r.IdentitySecretName,
		ordinal: decide.SeedOrdinal, version: c.Spec.Version, bump: r.RevisionBump, deadline: r.Deadline,
		token: clusterToken(in),
	})
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
				WithLabels(withStore(restoreLabels(c.Name), r.From.BackupDestination)).
				WithSpec(pod)))}, nil
}

// filling describes how to fill a member's volume from a backup.
type filling struct {
	// cluster is the cluster that was backed up, as NAMESPACE/NAME. backup is the name of the backup, or empty for the
	// newest.
	cluster, backup string
	// from is the store, or the etcd cluster to back up to a temporary store first.
	from v1alpha1.RestoreSource
	// identity is the Secret with the key to decrypt the backup.
	identity string
	ordinal  int
	// version is the etcd version that will run on the volume.
	version string
	// token is the token of the new cluster.
	token    string
	bump     int64
	deadline v1alpha1.Duration
	more     []string
}

// restorePod returns the spec of a pod that runs where the new member may run, because the volume is created where this
// pod runs.
func restorePod(in Input, f filling) (*applycorev1.PodSpecApplyConfiguration, error) {
	c := in.Cluster
	store := f.from.BackupDestination
	spec := storePod(c, store).
		WithVolumes(applycorev1.Volume().WithName(volumeData).
			WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
				WithClaimName(VolumeClaimName(c.Name, f.ordinal)))).
		WithVolumes(storeVolumes(store)...)
	mounts := []*applycorev1.VolumeMountApplyConfiguration{mountAt(volumeData, dataMount)}
	if f.identity != "" {
		spec.WithVolumes(secretFiles(volumeIdentity, f.identity, ageIdentity))
		mounts = append(mounts, mountAt(volumeIdentity, identityMount).WithReadOnly(true))
	}
	if f.from.Copies() {
		spec.WithVolumes(copyVolumes(c.Spec, f.from)...)
		mounts = append(mounts, mountAt(volumeCopy, copyMount).WithReadOnly(true),
			mountAt(volumeSpool, spoolMount).WithReadOnly(true))
	}
	steps := f.around(in, storeStep(in, store, RestoreContainer, f.args(c), mounts...))
	for _, step := range steps {
		if step.RestartPolicy == nil { // otherwise, it is etcd, with the resources of a member
			step.Resources = restoreResources(c)
		}
	}
	last := len(steps) - 1
	spec.WithInitContainers(steps[:last]...).WithContainers(steps[last])
	return spec, placement(c, spec)
}

// restoreResources returns the resources of the member that will use the volume, because a volume may be bound to the
// node on which it is first used. Without declared resources, it allows enough memory to write a large database
// quickly.
func restoreResources(c *v1alpha1.EtcdCluster) *applycorev1.ResourceRequirementsApplyConfiguration {
	if declared := memberResources(c); declared != nil {
		return declared
	}
	return applycorev1.ResourceRequirements().
		WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: inspectionMemory(c.Spec, "1Gi")})
}

func (f filling) args(c *v1alpha1.EtcdCluster) []string {
	quota := quotaOf(c.Spec)
	args := []string{"restore", f.cluster}
	if f.backup != "" {
		args = append(args, f.backup)
	}
	from := storeURL(f.from.BackupDestination)
	if f.from.Copies() {
		from = copyURL
	}
	args = append(args, "--from="+from, "--data-dir="+dataDir,
		"--name="+PodName(c.Name, f.ordinal), "--peer-url="+PeerURL(c, f.ordinal),
		"--initial-cluster-token="+escaped(f.token), "--revision-bump="+strconv.FormatInt(f.bump, 10),
		"--etcd-version="+f.version, "--quota="+strconv.FormatInt(quota.Value(), 10),
		"--once", "--result="+corev1.TerminationMessagePathDefault)
	args = append(args, f.more...)
	if f.from.Copies() {
		// An earlier attempt may have restored older data, or the data of a different source.
		args = append(args, "--expect="+resultFile)
	}
	if f.identity != "" {
		args = append(args, "--identity="+identityMount+"/"+ageIdentity)
	}
	return append(args, storeArgs(f.from.BackupDestination, f.deadline)...)
}
