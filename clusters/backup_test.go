package clusters

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

const declaredBackups = `, backup: {schedule: "@daily", to: {volume: {claimName: backups}}, before: [Upgrade]}`

// backedUp returns a stage with a running cluster that declares backups to a volume.
func backedUp(t *testing.T) *stage {
	s := running(t)
	s.live.options.BackupImage = "quorate:v1"
	s.spec += declaredBackups
	return s
}

// simplePod returns a pod template that Kubernetes accepts.
func simplePod() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// backups observes the cluster and checks that the drift of its CronJobs equals differs.
func (s *stage) backups(differs string) *cluster {
	s.Helper()
	c := s.observe()
	if got := strings.Join(c.state.Backups.Drift, ", "); got != differs {
		s.Fatalf("drift %q, want %q", got, differs)
	}
	s.settled(c)
	return c
}

// TestBackupObjects turns the backups of a cluster on and off on a real API server. It checks that the CronJob is
// created and corrected, left alone by a run without a backup image, and deleted once git no longer declares backups.
// An unmanaged CronJob is never changed.
func TestBackupObjects(t *testing.T) {
	s := backedUp(t)
	cronJobs := s.server.Client.BatchV1().CronJobs("default")
	theirs := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "a-backup"}, Spec: batchv1.CronJobSpec{Schedule: "@daily"}}
	theirs.Spec.JobTemplate.Spec.Template = simplePod()
	if _, err := cronJobs.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.do(s.observe(), decide.Declare{}, true)
	if c := s.backups(""); !strings.Contains(c.state.Backups.Foreign, "CronJob a-backup exists") || len(c.state.Objects.Foreign) > 0 {
		t.Errorf("%+v, %q", c.state.Backups, c.state.Objects.Foreign)
	}
	if err := cronJobs.Delete(t.Context(), "a-backup", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	s.do(s.backups("CronJob a-backup: missing"), decide.ApplyObjects{}, true)
	if c := s.backups(""); c.state.Backups.To != "volume://backups" || c.state.Backups.Suspended || c.state.Backups.Since.IsZero() {
		t.Errorf("%+v", c.state.Backups)
	}
	if _, err := cronJobs.Patch(t.Context(), "a-backup", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.live.options.BackupImage = ""
	s.backups("")
	s.decided("InvalidSpec", "--backup-image")
	s.live.options.BackupImage = "quorate:v1"
	s.do(s.backups("CronJob a-backup: changed at spec.suspend"), decide.ApplyObjects{}, true)

	s.spec = strings.TrimSuffix(s.spec, declaredBackups)
	s.do(s.observe(), decide.Declare{}, true)
	late := s.backups("CronJob a-backup: not declared")
	s.do(late, decide.ApplyObjects{}, true)
	s.backups("")
	if _, err := cronJobs.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatalf("the object still exists: %v", err)
	}
	s.do(late, decide.ApplyObjects{}, false)
	if _, err := cronJobs.Get(t.Context(), "a-backup", metav1.GetOptions{}); err != nil {
		t.Errorf("a late pass has deleted an unmanaged object: %v", err)
	}
}

// TestDrillObjects turns drills on and off on a real API server. It checks that an unmanaged CronJob with the name of
// the drill CronJob does not prevent backups, and that the result of Quorate's own Job is observed.
func TestDrillObjects(t *testing.T) {
	s := backedUp(t)
	const drill = `, drill: {schedule: "@weekly"}}`
	s.spec = strings.Replace(s.spec, "before: [Upgrade]}", "before: [Upgrade]"+drill, 1)
	cronJobs := s.server.Client.BatchV1().CronJobs("default")
	theirs := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "a-drill"}, Spec: batchv1.CronJobSpec{Schedule: "@daily"}}
	theirs.Spec.JobTemplate.Spec.Template = simplePod()
	if _, err := cronJobs.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.do(s.observe(), decide.Declare{}, true)
	c := s.backups("CronJob a-backup: missing")
	if !strings.Contains(c.state.Backups.DrillForeign, "CronJob a-drill exists") || c.state.Backups.Foreign != "" || len(c.state.Objects.Foreign) > 0 {
		t.Errorf("%+v, %q", c.state.Backups, c.state.Objects.Foreign)
	}
	s.do(c, decide.ApplyObjects{}, true)
	if err := cronJobs.Delete(t.Context(), "a-drill", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.do(s.backups("CronJob a-drill: missing"), decide.ApplyObjects{}, true)

	made, err := cronJobs.Get(t.Context(), "a-drill", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	controlled := *metav1.NewControllerRef(made, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "practice", Labels: made.Spec.JobTemplate.Labels, OwnerReferences: []metav1.OwnerReference{controlled}}, Spec: made.Spec.JobTemplate.Spec}
	if _, err := s.server.Client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.endJob("practice", objects.DrillContainer, batchv1.JobFailed, "quorate: the backup is damaged", 4)
	c = s.observe()
	if f := c.state.Backups.DrillFailed; f == nil || f.Job != "practice" || f.Message != "drill: the backup is damaged" || len(c.state.Backups.Jobs) > 0 || c.state.Replicas[0].Pod == "" {
		t.Errorf("%+v, %+v", f, c.state.Backups)
	}
	if d := decide.Decide(c.state); d.Rule == "QuorumLost" || strings.Contains(d.Message, "practice") {
		t.Errorf("%+v", d)
	}

	s.spec = strings.Replace(s.spec, drill, "}", 1)
	s.do(s.observe(), decide.Declare{}, true)
	s.do(s.backups("CronJob a-drill: not declared"), decide.ApplyObjects{}, true)
	if c := s.backups(""); c.own.Objects["CronJob/a-drill"] != nil || c.own.Objects["CronJob/a-backup"] == nil {
		t.Errorf("%v", c.own.Objects)
	}
}

// TestStartBackup checks that a pass starts one Job for each generation of the custom resource. Jobs that neither
// Quorate nor its CronJob created do not count, regardless of their labels.
func TestStartBackup(t *testing.T) {
	s := backedUp(t)
	s.do(s.observe(), decide.ApplyObjects{}, true)
	c := s.observe()
	if c.state.Generation == 0 || len(c.state.Backups.Jobs) > 0 || !c.state.Declared.BacksUp || !c.state.Declared.BacksUpBeforeUpgrade {
		t.Fatalf("generation %d, %+v, %+v", c.state.Generation, c.state.Backups, c.state.Declared)
	}
	start := decide.StartBackup{Generation: c.state.Generation}
	s.do(c, start, true)
	s.do(c, start, false)
	s.do(s.observe(), start, false)
	other := s.observe()
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: objects.BackupJobName("a", decide.StartBackup{Generation: 99})}, Spec: batchv1.JobSpec{Template: simplePod()}}
	if _, err := s.server.Client.BatchV1().Jobs("default").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.refuse(other, decide.StartBackup{Generation: 99}, "was not created by Quorate")

	jobs := s.server.Client.BatchV1().Jobs("default")
	forged, err := jobs.Get(t.Context(), objects.BackupJobName("a", start), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forged = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "forged", Labels: forged.Labels, Annotations: forged.Annotations}, Spec: batchv1.JobSpec{Template: simplePod()}}
	if _, err := jobs.Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := s.observe().state.Backups.Jobs
	if len(seen) != 1 || seen[0].Name != objects.BackupJobName("a", start) || seen[0].Generation != start.Generation || seen[0].Phase != decide.JobRuns ||
		time.Since(seen[0].CreatedAt) > time.Minute {
		t.Errorf("observed Jobs: %+v", seen)
	}
}

// TestLastBackup checks that the pass that deletes a cluster first starts the backup that the declaration requests,
// and leaves the StatefulSet unchanged. Only the observed Job can be discarded, and a new Job can then be started.
func TestLastBackup(t *testing.T) {
	s := backedUp(t)
	s.do(s.observe(), decide.ApplyObjects{}, true)
	s.spec = strings.Replace(s.spec, "before: [Upgrade]", "before: [Upgrade, Deletion]", 1) + ", lifecycle: Deleted"
	c := s.observe()
	if !c.state.Declared.BacksUpBeforeDeletion || !c.state.Objects.DeclarationDiffers {
		t.Fatalf("%+v %+v", c.state.Declared, c.state.Objects)
	}
	was := c.state.Generation
	s.do(c, decide.Declare{}, true)
	c = s.observe()
	if c.state.Generation != was+1 || c.state.Objects.DeclarationDiffers {
		t.Fatalf("generation %d after %d, %+v", c.state.Generation, was, c.state.Objects)
	}
	s.do(c, decide.StartBackup{Generation: c.state.Generation}, true)
	c = s.observe()
	if jobs := c.state.Backups.Jobs; len(jobs) != 1 || jobs[0].Generation != was+1 || c.state.Objects.RunsReplicas == 0 {
		t.Fatalf("observed Jobs: %+v, objects: %+v", jobs, c.state.Objects)
	}
	first := c.state.Backups.Jobs[0].UID
	s.refuse(c, decide.DiscardBackup{JobUID: "another"}, "the Job was not observed")
	s.do(c, decide.DiscardBackup{JobUID: first}, true)
	s.do(s.observe(), decide.StartBackup{Generation: was + 1}, true)
	if jobs := s.observe().state.Backups.Jobs; len(jobs) != 1 || jobs[0].UID == first || jobs[0].UID == "" {
		t.Errorf("observed Jobs: %+v", jobs)
	}
}
