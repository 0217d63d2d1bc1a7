package objects

import (
	"fmt"
	"strconv"

	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// copyClaims returns the containers that copy the data of a stopped cluster to the temporary store: PrepareContainer, a
// sidecar with etcd, and CopyContainer. Only PrepareContainer mounts the source's volumes and runs as their user.
func (f filling) copyClaims(in Input) []*applycorev1.ContainerApplyConfiguration {
	var nowhere v1alpha1.BackupDestination
	from, work := f.from.Claims, mountAt(volumeWork, workMount)
	args, mounts := f.importArgs(in, "--prepare"), []*applycorev1.VolumeMountApplyConfiguration{work}
	for i, name := range from.Names {
		at := sourceMount + "/" + string(name)
		args = append(args, "--data-dir="+at)
		mounts = append(mounts, mountAt(claimVolume(i), at).WithReadOnly(true))
	}
	if from.Path != "" {
		args = append(args, "--path="+from.Path)
	}
	if from.AcceptLag {
		args = append(args, "--accept-lag")
	}
	prepare := storeStep(in, nowhere, PrepareContainer, args, mounts...).
		WithEnv(applycorev1.EnvVar().WithName("TMPDIR").WithValue(workMount))
	if from.RunAsUser != nil {
		prepare.SecurityContext.WithRunAsUser(*from.RunAsUser).WithRunAsNonRoot(*from.RunAsUser != 0)
	}
	back := storeStep(in, nowhere, CopyContainer, append(f.importArgs(in, "--prepared"), "--result="+resultFile), work,
		mountAt(volumeSpool, spoolMount), mountAt(volumeCopy, copyMount))
	return []*applycorev1.ContainerApplyConfiguration{prepare, etcdOnCopy(in.Cluster, f.version, work), back}
}

func (f filling) importArgs(in Input, step string) []string {
	quota := quotaOf(in.Cluster.Spec) // larger data would not be restored
	return []string{"backups", "import", f.cluster, step, "--cluster-id=" + f.from.Claims.ClusterID, "--to=" + copyURL,
		"--dir=" + workMount, "--etcd-version=" + f.version, "--max-bytes=" + strconv.FormatInt(quota.Value(), 10),
		"--timeout=" + string(f.deadline)}
}

// claimVolumes returns the source's volumes and the volume to which one of them is copied.
func claimVolumes(spec v1alpha1.EtcdClusterSpec, from *v1alpha1.ClaimsSource) []*applycorev1.VolumeApplyConfiguration {
	list := []*applycorev1.VolumeApplyConfiguration{applycorev1.Volume().WithName(volumeWork).
		WithEmptyDir(applycorev1.EmptyDirVolumeSource().WithSizeLimit(workLimit(spec)))}
	for i, name := range from.Names {
		list = append(list, applycorev1.Volume().WithName(claimVolume(i)).
			WithPersistentVolumeClaim(applycorev1.PersistentVolumeClaimVolumeSource().
				WithClaimName(string(name)).WithReadOnly(true)))
	}
	return list
}

func claimVolume(i int) string { return fmt.Sprintf("%s-%d", volumeSource, i) }
