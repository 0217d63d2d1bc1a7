package objects

import (
	"slices"
	"testing"

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
