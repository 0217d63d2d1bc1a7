package objects

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// These containers run before and after RestoreContainer if the data comes from an etcd cluster. CopyContainer backs up
// the cluster to a temporary store. CompareContainer and CompareAgainContainer fail if a running cluster has changed
// since that backup. If the cluster is stopped, PrepareContainer first copies its data, and etcd runs on the copy.
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
	switch {
	case f.from.Claims != nil:
		return append(f.copyClaims(in), restore)
	case f.from.Etcd == nil:
		return []*applycorev1.ContainerApplyConfiguration{restore}
	}
	var nowhere v1alpha1.BackupDestination
	spool, store := mountAt(volumeSpool, spoolMount), mountAt(volumeCopy, copyMount)
	mounts := []*applycorev1.VolumeMountApplyConfiguration{spool}
	if f.from.Etcd.SecretName != "" {
		mounts = append(mounts, mountAt(volumeSource, sourceMount).WithReadOnly(true))
	}
	quota := quotaOf(in.Cluster.Spec) // larger data would not be restored
	back := append(f.sourceArgs("backup"), "--cluster-id="+f.from.Etcd.ClusterID, "--to="+copyURL,
		"--spool="+spoolMount, "--max-bytes="+strconv.FormatInt(quota.Value(), 10))
	steps := []*applycorev1.ContainerApplyConfiguration{
		storeStep(in, nowhere, CopyContainer, back, append(mounts, store)...)}
	compare := func(name string) {
		if !f.from.Etcd.AcceptLag {
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
	for _, url := range f.from.Etcd.Endpoints {
		args = append(args, "--member="+string(url))
	}
	args = append(args, "--result="+resultFile, "--timeout="+string(f.deadline))
	if f.from.Etcd.SecretName != "" {
		args = append(args, "--credentials="+sourceMount)
	}
	return args
}

// copyVolumes returns the volumes for the temporary store and the spool, and those of the source.
func copyVolumes(spec v1alpha1.EtcdClusterSpec, from v1alpha1.RestoreSource) []*applycorev1.VolumeApplyConfiguration {
	var list []*applycorev1.VolumeApplyConfiguration
	for _, name := range []string{volumeCopy, volumeSpool} {
		list = append(list, applycorev1.Volume().WithName(name).
			WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(spoolLimit(spec))))
	}
	if from.Claims != nil {
		return append(list, claimVolumes(spec, from.Claims)...)
	}
	if from.Etcd.SecretName != "" {
		files := secretFiles(volumeSource, from.Etcd.SecretName, corev1.ServiceAccountRootCAKey, corev1.TLSCertKey,
			corev1.TLSPrivateKeyKey, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		files.Secret.WithOptional(true) // otherwise, all keys would be required
		list = append(list, files)
	}
	return list
}
