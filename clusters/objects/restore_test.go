package objects

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	applybatchv1 "k8s.io/client-go/applyconfigurations/batch/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestRestoreJobEscapesTokenAndMountsReadOnly checks that Kubernetes does not expand variables in a token from the
// record, and that untrusted backups are read from a read-only volume.
func TestRestoreJobEscapesTokenAndMountsReadOnly(t *testing.T) {
	_, sections := openGolden(t, "../../testdata/objects/restore_3.7.txtar")
	in := goldenInput(t, sections)
	in.Record.Token = "$(AWS_SECRET_ACCESS_KEY)"
	in.Cluster.Spec.Restore.From = v1alpha1.RestoreSource{BackupDestination: v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{ClaimName: "backups"}}}
	job, err := RestoreJob(in, "u")
	if err != nil {
		t.Fatal(err)
	}
	step := job.Apply.(*applybatchv1.JobApplyConfiguration).Spec.Template.Spec.Containers[0]
	if want := "--initial-cluster-token=" + in.Cluster.Namespace + "-" + in.Cluster.Name + "-$$(AWS_SECRET_ACCESS_KEY)"; !slices.Contains(step.Args, want) {
		t.Errorf("%q, want %q", step.Args, want)
	}
	store := slices.IndexFunc(step.VolumeMounts, func(m applycorev1.VolumeMountApplyConfiguration) bool { return *m.Name == volumeStore })
	if store < 0 || step.VolumeMounts[store].ReadOnly == nil || !*step.VolumeMounts[store].ReadOnly {
		t.Errorf("%+v", step.VolumeMounts)
	}
}

// TestOnlyPrepareReadsClaims checks that only one container mounts the source's claims, read-only, and that only this
// container runs as their user, without root's capabilities.
func TestOnlyPrepareReadsClaims(t *testing.T) {
	_, sections := openGolden(t, "../../testdata/objects/copy_claims_3.7.txtar")
	in := goldenInput(t, sections)
	root := int64(0)
	in.Cluster.Spec.Restore.From.Claims.RunAsUser = &root
	job, err := RestoreJob(in, "u")
	if err != nil {
		t.Fatal(err)
	}
	spec := job.Apply.(*applybatchv1.JobApplyConfiguration).Spec.Template.Spec
	for _, volume := range spec.Volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil && *claim.ClaimName != "data-a-0" && (claim.ReadOnly == nil || !*claim.ReadOnly) {
			t.Errorf("%s is not mounted read-only", *claim.ClaimName)
		}
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		for _, mount := range c.VolumeMounts {
			source := strings.HasPrefix(*mount.Name, volumeSource)
			if source != strings.HasPrefix(*mount.MountPath, sourceMount) || source && (*c.Name != PrepareContainer || !*mount.ReadOnly) {
				t.Errorf("%s: %s in %s", *c.Name, *mount.Name, *mount.MountPath)
			}
		}
		security := c.SecurityContext
		if isRoot := security.RunAsUser != nil && *security.RunAsUser == 0; isRoot != (*c.Name == PrepareContainer) || *security.AllowPrivilegeEscalation ||
			!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: %+v", *c.Name, security)
		}
	}
}
