package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// These are the containers of a recovery pod. The first copies the member's data. The second runs etcd on the copy
// while the last creates the new cluster.
const (
	PrepareContainer  = "prepare"
	recoveryEtcd      = "etcd"
	RecoverContainer  = "recover"
	componentRecovery = "recovery"

	volumeWork = "work"
	workMount  = "/scratch"
)

// These are annotations of the recovery Job, in addition to AnnotationVolume.
const (
	// AnnotationRecoveryDigest is the digest of the request for which the Job was started.
	AnnotationRecoveryDigest = "etcd.quorate.dev/recovery-digest"
	// AnnotationLostCluster is the ID of the lost cluster. The claims left over from that cluster also have this
	// annotation, except the claim whose data becomes the data of the new cluster.
	AnnotationLostCluster = "etcd.quorate.dev/lost-cluster"
	// AnnotationOrdinal is the ordinal of the surviving member, or of the member to create from a backup.
	AnnotationOrdinal = "etcd.quorate.dev/ordinal"
)

// LostCluster returns the ID of the lost cluster to which a claim with these annotations belonged, or zero. If the
// annotation is invalid, it returns an ID that no existing cluster has.
func LostCluster(annotations map[string]string) decide.ID {
	text, marked := annotations[AnnotationLostCluster]
	if !marked {
		return 0
	}
	var id decide.ID
	if id.UnmarshalText([]byte(text)) != nil || id == 0 {
		return math.MaxUint64
	}
	return id
}

// RecoveryOf returns the recovery that a declaration requests for a cluster that has lost its majority, or zero. A Job
// that was started for a different request is restarted. Changing only the declared lost members does not make the
// request different.
func RecoveryOf(c *v1alpha1.EtcdCluster) decide.RecoveryOrder {
	r := c.Spec.Recovery
	if r == nil || r.Member == nil {
		return decide.RecoveryOrder{}
	}
	var order decide.RecoveryOrder
	if order.ClusterID.UnmarshalText([]byte(r.ClusterID)) != nil {
		return decide.RecoveryOrder{} // checked when the declaration is read
	}
	order.Ordinal, order.OldVolumes = int(*r.Member), decide.Retention(r.OldVolumes)
	for _, ordinal := range r.Lost {
		order.Lost = order.Lost.With(int(ordinal))
	}
	order.Deadline, _ = time.ParseDuration(string(r.Deadline))
	order.Digest = digestOf(r.ClusterID, r.Member, r.RevisionBump)
	order.Word = digestOf(r.ClusterID, r.Member, r.RevisionBump, order.Lost)
	if b := r.Backup; b != nil {
		order.Backup = describeBackup(b.Name, clusterKey(c), b.From)
		order.Digest = digestOf(r.ClusterID, r.Member, r.RevisionBump, b, c.Spec.Etcd.Quota, c.Spec.TLS.Mode)
		order.Word = digestOf(r.ClusterID, r.Member, r.RevisionBump, order.Lost, b)
	}
	return order
}

func digestOf(words ...any) string {
	text, err := json.Marshal(words)
	if err != nil {
		panic(fmt.Sprintf("encode spec.recovery: %v", err)) // plain data can always be encoded
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func recoveryLabels(cluster string) map[string]string {
	labels := Labels(cluster)
	maps.Copy(labels, map[string]string{labelComponent: componentRecovery})
	return labels
}

// RecoveryVersion returns the etcd version that recovers a cluster: runs, the version that last ran, or the declared
// version if runs is empty. If the members' image has a digest, the image of that version must have one too.
func RecoveryVersion(c *v1alpha1.EtcdCluster, runs string) (string, error) {
	version := cmp.Or(runs, c.Spec.Version)
	if _, err := etcdversion.Parse(version); err != nil {
		return "", fmt.Errorf("the version of etcd that last ran: %w", err)
	}
	if digests := c.Spec.Image.Digests; digests[c.Spec.Version] != "" && digests[version] == "" {
		return "", fmt.Errorf("spec.image.digests must contain a digest for etcd %s, which last ran and is needed "+
			"to recover the data",
			version)
	}
	return version, nil
}

// RecoveryJob returns the Job that creates a new cluster in the recorded volume, from the volume's data or from a
// backup. runs is the etcd version that last ran on the volume. If runs is empty, the declared version is used.
func RecoveryJob(in Input, runs string) (Object, error) {
	c, begun := in.Cluster, in.Record.Recovery
	order := RecoveryOf(c)
	if order.ClusterID == 0 || !in.Record.Recovering() || in.BackupImage == "" || c.UID == "" {
		return Object{}, fmt.Errorf("build the recovery of %s/%s: no recovery is requested or started, or its image "+
			"is unknown", c.Namespace, c.Name)
	}
	version, err := RecoveryVersion(c, runs)
	if err != nil {
		return Object{}, fmt.Errorf("build the recovery of %s/%s: %w", c.Namespace, c.Name, err)
	}
	labels, annotations := recoveryLabels(c.Name), map[string]string{AnnotationRecoveryDigest: order.Digest,
		AnnotationVolume: begun.VolumeUID, AnnotationLostCluster: begun.ClusterID.String(),
		AnnotationOrdinal: strconv.Itoa(begun.Ordinal)}
	build := recoveryPod
	if b := c.Spec.Recovery.Backup; b != nil {
		build, annotations[AnnotationRestoreFrom], labels = recoveryFromBackup, order.Backup, withStore(labels, b.From)
	}
	pod, err := build(in, version)
	if err != nil {
		return Object{}, fmt.Errorf("build the recovery of %s/%s: %w", c.Namespace, c.Name, err)
	}
	id := NamesOf(c.Name).Recovery()
	return Object{id, applybatchv1.Job(id.Name, c.Namespace).
		WithLabels(recoveryLabels(c.Name)).
		WithAnnotations(annotations).
		WithOwnerReferences(owner(c)).
		WithSpec(applybatchv1.JobSpec().
			WithBackoffLimit(backupAttempts).
			WithPodFailurePolicy(storeFailures()).
			WithActiveDeadlineSeconds(int64(order.Deadline.Seconds())).
			WithTTLSecondsAfterFinished(startedKept).
			WithTemplate(applycorev1.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(pod)))}, nil
}

// recoveryFromBackup returns the spec of a pod that fills the volume from a backup and keeps the lost cluster's data on
// the volume.
func recoveryFromBackup(in Input, version string) (*applycorev1.PodSpecApplyConfiguration, error) {
	c, begun, r := in.Cluster, in.Record.Recovery, in.Cluster.Spec.Recovery
	return restorePod(in, filling{
		cluster: clusterKey(c), backup: r.Backup.Name, identity: r.Backup.IdentitySecretName,
		from:    v1alpha1.RestoreSource{BackupDestination: r.Backup.From},
		ordinal: begun.Ordinal, version: version, bump: r.RevisionBump, deadline: r.Deadline,
		token: clusterToken(in) + "-" + begun.ClusterID.String() + "-" + r.Backup.Name,
		more:  []string{"--lost-cluster-id=" + begun.ClusterID.String()},
	})
}

// recoveryPod returns the spec of a pod that runs where the volume is. Its etcd can be reached only from within the
// pod.
func recoveryPod(in Input, version string) (*applycorev1.PodSpecApplyConfiguration, error) {
	c := in.Cluster
	var nowhere v1alpha1.BackupDestination
	data, work := mountAt(volumeData, dataMount), mountAt(volumeWork, workMount)
	prepare := storeStep(in, nowhere, PrepareContainer, recoverArgs(in, "--prepare", version), data, work)
	finish := storeStep(in, nowhere, RecoverContainer,
		append(recoverArgs(in, "--prepared", version), "--result="+corev1.TerminationMessagePathDefault), data, work)
	for _, step := range []*applycorev1.ContainerApplyConfiguration{prepare, finish} {
		step.WithEnv(applycorev1.EnvVar().WithName("TMPDIR").WithValue(workMount))
		step.Resources = restoreResources(c)
	}
	spec := storePod(c, nowhere).
		WithVolumes(
			applycorev1.Volume().WithName(volumeData).
				WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
					WithClaimName(VolumeClaimName(c.Name, in.Record.Recovery.Ordinal))),
			applycorev1.Volume().WithName(volumeWork).WithEmptyDir(applycorev1.EmptyDirVolumeSource().
				WithSizeLimit(workLimit(c.Spec)))).
		WithInitContainers(prepare, etcdOnCopy(c, version, work)).
		WithContainers(finish)
	return spec, placement(c, spec)
}

// workLimit returns the size limit of the volume to which a member's data is copied. The copy, its snapshot and the new
// member each fit into a volume of the declared size, unless files are sparse.
func workLimit(spec v1alpha1.EtcdClusterSpec) resource.Quantity {
	limit := spec.Storage.Size.DeepCopy()
	limit.Mul(3)
	return limit
}

// etcdOnCopy returns the sidecar container that runs etcd on the copy until the last container exits.
func etcdOnCopy(
	c *v1alpha1.EtcdCluster, version string, work *applycorev1.VolumeMountApplyConfiguration,
) *applycorev1.ContainerApplyConfiguration {
	spec := c.Spec
	spec.Version = version
	container := applycorev1.Container().
		WithName(recoveryEtcd).
		WithImage(image(spec)).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways).
		WithCommand(etcdCommand, "--config-file="+workMount+"/"+recoveryConfig).
		WithWorkingDir(workMount).
		WithVolumeMounts(work).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(applycorev1.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(applycorev1.Capabilities().WithDrop("ALL")))
	container.Resources = memberResources(c)
	return container
}

// recoveryConfig is the configuration file that quorate recover --prepare writes for the etcd on the copy.
const recoveryConfig = "etcd.yaml"

func recoverArgs(in Input, step, version string) []string {
	c, begun := in.Cluster, in.Record.Recovery
	return []string{"recover", step, "--data-dir=" + dataDir, "--cluster-id=" + begun.ClusterID.String(),
		"--name=" + PodName(c.Name, begun.Ordinal), "--peer-url=" + PeerURL(c, begun.Ordinal),
		"--initial-cluster-token=" + escaped(clusterToken(in)+"-"+begun.ClusterID.String()),
		"--revision-bump=" + strconv.FormatInt(c.Spec.Recovery.RevisionBump, 10),
		"--etcd-version=" + version, "--dir=" + workMount, "--timeout=" + string(c.Spec.Recovery.Deadline)}
}
