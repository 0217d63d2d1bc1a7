package podstate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

var made = time.Date(2026, 11, 22, 18, 0, 3, 0, time.UTC)

// word returns the result of a backup that began the given time after its Job was created.
func word(begun time.Duration) string {
	return fmt.Sprintf(`{"format":"quorate.dev/backup-result/v1","slot":"2026-11-22T18:00:00Z",`+
		`"data":"20261122t180000z-18204-9c4bbfd4.db.zst","clusterID":"15082e1bb141d752","revision":18204,"bytes":77856,"sha256":"%s",`+
		`"startedAt":"%s","finishedAt":"2026-11-22T18:00:09.5Z","suspect":false}`, strings.Repeat("a", 64), made.Add(begun).Format(time.RFC3339Nano))
}

// ran returns the status of a container that has exited.
func ran(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}
}

func waits(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func backupJob(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "a-backup-gen2", UID: "j1", CreationTimestamp: metav1.NewTime(made),
			OwnerReferences: []metav1.OwnerReference{{Kind: "EtcdCluster", UID: "c1", Controller: new(true)}},
			Annotations:     map[string]string{objects.AnnotationGeneration: "2", objects.AnnotationBackupTo: "s3://b/p"}},
		Status: batchv1.JobStatus{Conditions: conditions},
	}
}

func ended(as batchv1.JobConditionType, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: as, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: metav1.NewTime(made.Add(time.Minute))}
}

// TestBackupJobsStartedByPasses checks that a Job counts as started by a pass only if its owner, name and annotations
// match.
func TestBackupJobsStartedByPasses(t *testing.T) {
	since := made.Add(-time.Minute)
	byDifference := func(j *batchv1.Job) {
		j.Name, j.Annotations = "a-backup-dtox0mf", map[string]string{objects.AnnotationDiffersSince: since.Format(time.RFC3339)}
	}
	for what, c := range map[string]struct {
		change     func(*batchv1.Job)
		generation int64
		since      time.Time
	}{
		"a generation":                 {func(*batchv1.Job) {}, 2, time.Time{}},
		"another generation's name":    {func(j *batchv1.Job) { j.Name = "a-backup-gen3" }, 0, time.Time{}},
		"a difference":                 {byDifference, 0, since},
		"a difference at another time": {func(j *batchv1.Job) { byDifference(j); j.Name = "a-backup-dtox0mg" }, 0, time.Time{}},
		"a difference, with any name":  {func(j *batchv1.Job) { byDifference(j); j.Name = "a-backup-gen2" }, 0, time.Time{}},
		"a difference, another owner":  {func(j *batchv1.Job) { byDifference(j); j.OwnerReferences[0].Kind = "CronJob" }, 0, time.Time{}},
		"a difference, not a time":     {func(j *batchv1.Job) { byDifference(j); j.Annotations[objects.AnnotationDiffersSince] = "now" }, 0, time.Time{}},
		"a difference before 1970": {func(j *batchv1.Job) {
			byDifference(j)
			j.Annotations[objects.AnnotationDiffersSince] = "0000-01-01T00:00:00+10:00"
		}, 0, time.Time{}},
		"a difference in the future": {func(j *batchv1.Job) {
			byDifference(j)
			j.Annotations[objects.AnnotationDiffersSince] = "9999-12-31T23:59:59-10:00"
		}, 0, time.Time{}},
		"both annotations": {func(j *batchv1.Job) { byDifference(j); j.Annotations[objects.AnnotationGeneration] = "2" }, 0, since},
	} {
		job := backupJob()
		c.change(job)
		if got := BackupJob("a", job, nil, made); got.Generation != c.generation || !got.DiffersSince.Equal(c.since) {
			t.Errorf("%s: generation %d, differs since %s", what, got.Generation, got.DiffersSince)
		}
	}
}

// podOf returns a pod of the Job, in which all containers except the last are init containers.
func podOf(uid string, containers ...corev1.ContainerStatus) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{{UID: "j1"}}, CreationTimestamp: metav1.NewTime(made)}}
	if uid != "" {
		p.OwnerReferences[0].UID = "other"
	}
	if last := len(containers) - 1; last >= 0 {
		p.Status.InitContainerStatuses, p.Status.ContainerStatuses = containers[:last], containers[last:]
		if ended := containers[last].State.Terminated; ended != nil {
			p.Status.Phase = map[bool]corev1.PodPhase{true: corev1.PodSucceeded, false: corev1.PodFailed}[ended.ExitCode == 0]
		}
	}
	return p
}

// TestBackupJob checks which results count as a backup, and the messages of failed backups.
func TestBackupJob(t *testing.T) {
	complete, failed := ended(batchv1.JobComplete, ""), ended(batchv1.JobFailed, "Job was active longer than specified deadline")
	later := podOf("", ran("backup", 1, "{}\nquorate: back up b/a: the store refuses\n"))
	later.CreationTimestamp = metav1.NewTime(made.Add(time.Minute))
	tests := []struct {
		name    string
		job     *batchv1.Job
		pods    []*corev1.Pod
		phase   decide.JobPhase
		message string
		backup  string // start relative to the Job, and whether it is verified, or empty without a backup
	}{
		{"no pod yet", backupJob(), nil, decide.JobRuns, "", ""},
		{"stored and verified", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, word(time.Second)), ran("verify", 0, ""))}, decide.JobSucceeded, "", "0s true"},
		{"stored, and being verified", backupJob(), []*corev1.Pod{podOf("", ran("backup", 0, word(time.Second)), corev1.ContainerStatus{Name: "verify"})}, decide.JobRuns, "", "0s false"},
		{"stored and damaged", backupJob(failed), []*corev1.Pod{podOf("", ran("backup", 0, word(0)), ran("verify", 4, "quorate: b/a: damaged"))}, decide.JobFailed, "verify: b/a: damaged", ""},
		{"stored, and not read back", backupJob(failed), []*corev1.Pod{podOf("", ran("backup", 0, word(0)), ran("verify", 1, "quorate: 403"))}, decide.JobFailed, "verify: 403", "0s false"},
		{"stored, verified and not pruned", backupJob(failed), []*corev1.Pod{podOf("", ran("backup", 0, word(0)), ran("verify", 0, ""), ran("prune", 1, ""))}, decide.JobFailed, "prune: exit code 1", "0s true"},
		{"there already", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, word(-time.Hour)), ran("verify", 0, ""))}, decide.JobSucceeded, "", "-1h0m0s true"},
		{"a clock that is late", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, word(-4*time.Minute)))}, decide.JobSucceeded, "", "0s false"},
		{"of the future", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, strings.ReplaceAll(strings.ReplaceAll(word(0), "2026-11-22T18:00:00Z", "2026-11-22T18:11:00Z"), "t180000z", "t181100z")))}, decide.JobSucceeded, "", ""},
		{"no word", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, "done"))}, decide.JobSucceeded, "", ""},
		{"a suspect one", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, strings.Replace(word(0), `"suspect":false`, `"suspect":true`, 1)))}, decide.JobSucceeded, "", ""},
		{"stored as suspect", backupJob(failed), []*corev1.Pod{podOf("", ran("backup", 4, strings.Replace(word(0), `"suspect":false`, `"suspect":true`, 1)))}, decide.JobFailed,
			suspect, ""},
		{"the second attempt", backupJob(failed), []*corev1.Pod{later, podOf("", ran("backup", 1, "quorate: no"))}, decide.JobFailed, "backup: back up b/a: the store refuses", ""},
		{"verified by the second attempt", backupJob(complete), []*corev1.Pod{podOf("", ran("backup", 0, word(0)), ran("verify", 0, "")), podOf("", ran("backup", 0, word(0)), ran("verify", 1, "quorate: 403"))},
			decide.JobSucceeded, "", "0s true"},
		{"found damaged by the second attempt", backupJob(failed), []*corev1.Pod{podOf("", ran("backup", 0, word(0)), ran("verify", 0, ""), ran("prune", 137, "")),
			podOf("", ran("backup", 0, word(0)), ran("verify", 4, "quorate: b/a: damaged"))}, decide.JobFailed, "verify: b/a: damaged", ""},
		{"the deadline", backupJob(failed), nil, decide.JobFailed, "Job was active longer than specified deadline", ""},
		{"no image", backupJob(), []*corev1.Pod{podOf("", waits("backup", "ImagePullBackOff", "no \x1b[31mway"))}, decide.JobRuns, `ImagePullBackOff: no \x1b[31mway`, ""},
		{"about to start", backupJob(), []*corev1.Pod{podOf("", waits("backup", "PodInitializing", ""))}, decide.JobRuns, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j := BackupJob("a", test.job, test.pods, made.Add(20*time.Second))
			backup := ""
			if j.Backup != nil {
				backup = fmt.Sprint(j.Backup.StartedAt.Sub(made), j.Backup.Verified)
				if j.Backup.ClusterID != 0x15082e1bb141d752 || j.Backup.Revision != 18204 || j.Backup.To != "s3://b/p" || j.Backup.Job != j.Name {
					t.Errorf("got %+v", j.Backup)
				}
			}
			if j.Phase != test.phase || j.Message != test.message || backup != strings.Replace(test.backup, " ", " ", 1) || j.Generation != 2 {
				t.Errorf("got %+v, backup %q", j, backup)
			}
		})
	}
}

// TestFutureBackupIsIgnored checks that a stored backup from the future is ignored, and that a backup from a node whose
// clock is a day ahead counts as started when its Job was created.
func TestFutureBackupIsIgnored(t *testing.T) {
	done := []*corev1.Pod{podOf("", ran("backup", 0, word(time.Second)), ran("verify", 0, ""))}
	if j := BackupJob("a", backupJob(ended(batchv1.JobComplete, "")), done, made.Add(-24*time.Hour)); j.Backup != nil || j.Phase != decide.JobSucceeded {
		t.Errorf("got %+v, %+v", j, j.Backup)
	}
	ahead := strings.ReplaceAll(word(24*time.Hour), `"finishedAt":"2026-11-22`, `"finishedAt":"2026-11-23`)
	done = []*corev1.Pod{podOf("", ran("backup", 0, ahead), ran("verify", 0, ""))}
	if j := BackupJob("a", backupJob(ended(batchv1.JobComplete, "")), done, made.Add(time.Minute)); j.Backup == nil || !j.Backup.StartedAt.Equal(made) {
		t.Errorf("got %+v, %+v", j, j.Backup)
	}
}

// TestManualBackupHasNoGeneration checks that a Job has a generation only if a pass made the custom resource its owner.
func TestManualBackupHasNoGeneration(t *testing.T) {
	done := []*corev1.Pod{podOf("", ran("backup", 0, word(time.Second)), ran("verify", 0, ""))}
	if j := BackupJob("a", backupJob(), done, made); j.Generation != 2 || j.Backup.Generation != 2 {
		t.Errorf("got %+v, %+v", j, j.Backup)
	}
	byHand := backupJob()
	byHand.OwnerReferences[0].Kind = "CronJob"
	if j := BackupJob("a", byHand, done, made); j.Generation != 0 || j.Backup == nil || j.Backup.Generation != 0 {
		t.Errorf("it was created manually, and it is %+v, %+v", j, j.Backup)
	}
}
