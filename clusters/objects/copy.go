package objects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// These containers run before and after RestoreContainer if the data comes from a running etcd cluster. CopyContainer
// backs up the cluster to a temporary store. CompareContainer and CompareAgainContainer fail if the cluster has changed
// since that backup.
const (
	CopyContainer         = "copy"
	CompareContainer      = "compare"
	CompareAgainContainer = "compare-again"
)

const (
	// copyURL is the URL of the temporary store that holds the copy until it is restored.
	copyURL = "file://" + copyMount

	volumeCopy   = "copy"
	volumeSource = "source"

	copyMount   = "/copy"
	sourceMount = "/source"
)

// around returns the containers of a restore pod in the order in which they run. Containers that connect to the source
// do not mount the member's volume.
func (f filling) around(
	in Input, restore *applycorev1.ContainerApplyConfiguration,
) []*applycorev1.ContainerApplyConfiguration {
	if f.copied == nil {
		return []*applycorev1.ContainerApplyConfiguration{restore}
	}
	var nowhere v1alpha1.BackupDestination
	spool, store := mountAt(volumeSpool, spoolMount), mountAt(volumeCopy, copyMount)
	mounts := []*applycorev1.VolumeMountApplyConfiguration{spool}
	if f.copied.SecretName != "" {
		mounts = append(mounts, mountAt(volumeSource, sourceMount).WithReadOnly(true))
	}
	quota := quotaOf(in.Cluster.Spec) // larger data would not be restored
	back := append(f.sourceArgs("backup"), "--cluster-id="+f.copied.ClusterID, "--to="+copyURL, "--spool="+spoolMount,
		"--max-bytes="+strconv.FormatInt(quota.Value(), 10))
	steps := []*applycorev1.ContainerApplyConfiguration{
		storeStep(in, nowhere, CopyContainer, back, append(mounts, store)...)}
	compare := func(name string) {
		if !f.copied.AcceptLag {
			steps = append(steps, storeStep(in, nowhere, name, f.sourceArgs("backups", "compare"), mounts...))
		}
	}
	compare(CompareContainer) // before the volume is changed, so that another attempt can begin with an empty volume
	steps = append(steps, restore)
	compare(CompareAgainContainer)
	return steps
}

// sourceArgs returns the arguments of a command that connects to the source.
func (f filling) sourceArgs(command ...string) []string {
	args := append(command, f.cluster)
	for _, url := range f.copied.Endpoints {
		args = append(args, "--member="+string(url))
	}
	args = append(args, "--result="+resultFile, "--timeout="+string(f.deadline))
	if f.copied.SecretName != "" {
		args = append(args, "--credentials="+sourceMount)
	}
	return args
}

// copyVolumes returns the volumes for the temporary store, the spool and the source's credentials.
func copyVolumes(spec v1alpha1.EtcdClusterSpec, from *v1alpha1.EtcdSource) []*applycorev1.VolumeApplyConfiguration {
	var list []*applycorev1.VolumeApplyConfiguration
	for _, name := range []string{volumeCopy, volumeSpool} {
		list = append(list, applycorev1.Volume().WithName(name).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(spoolLimit(spec))))
	}
	if from.SecretName != "" {
		files := secretFiles(volumeSource, from.SecretName, corev1.ServiceAccountRootCAKey, corev1.TLSCertKey,
			corev1.TLSPrivateKeyKey, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		files.Secret.WithOptional(true) // otherwise, all keys would be required
		list = append(list, files)
	}
	return list
}
