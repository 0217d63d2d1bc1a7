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

// TestRestoreJob checks the result of a restore Job, and its message.
func TestRestoreJob(t *testing.T) {
	restored := fmt.Sprintf(`{"format":"quorate.dev/restore-result/v1","slot":"2026-11-22T18:00:00Z","data":"20261122t180000z-18204-9c4bbfd4.db.zst",`+
		`"sourceClusterID":"15082e1bb141d752","revision":18204,"newRevision":1000018204,"bytes":77856,"sha256":"%s","startedAt":"2026-11-22T19:00:03Z",`+
		`"finishedAt":"2026-11-22T19:00:09Z","suspect":false,"clusterID":"00000000000000c2","memberID":"00000000000000a1"}`, strings.Repeat("a", 64))
	job := func(conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-restore", UID: "j1", CreationTimestamp: metav1.NewTime(made), Annotations: map[string]string{
			objects.AnnotationRestoreFrom: "tuesday\x1b[31m", objects.AnnotationRestoreDigest: "d1", objects.AnnotationVolume: "v0"}},
			Status: batchv1.JobStatus{Conditions: conditions}}
	}
	copies := func(job *batchv1.Job) *batchv1.Job {
		job.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "copy"}, {Name: "restore"}}
		return job
	}
	const well = "the backup 2026-11-22T18:00:00Z of cluster 15082e1bb141d752 at revision 18204"
	for _, test := range []struct {
		name     string
		job      *batchv1.Job
		pods     []*corev1.Pod
		phase    decide.JobPhase
		message  string
		restored string
		after    time.Duration
	}{
		{name: "no pod yet", job: job(), phase: decide.JobRuns, after: 29 * time.Second},
		{name: "no pod for long", job: job(), phase: decide.JobRuns, message: "it has no pod. See kubectl describe job a-restore", after: 30 * time.Second},
		{name: "restored, although suspect", job: job(ended(batchv1.JobComplete, "")),
			pods: []*corev1.Pod{podOf("", ran("restore", 0, strings.Replace(restored, `"suspect":false`, `"suspect":true`, 1)))}, phase: decide.JobSucceeded,
			restored: strings.Replace(well, "the backup", "the suspect backup", 1)},
		{"starting", job(), []*corev1.Pod{podOf("", waits("restore", "ContainerCreating", ""))}, decide.JobRuns,
			"pod p is starting. If it does not start, see kubectl describe pod p", "", 0},
		{"without a Secret", job(), []*corev1.Pod{podOf("", waits("restore", "CreateContainerConfigError", `secret "s3" not found`))}, decide.JobRuns,
			`CreateContainerConfigError: secret "s3" not found`, "", 0},
		{"failing", job(), []*corev1.Pod{podOf("", ran("restore", 1, "quorate: restore: 503\n"))}, decide.JobRuns, "restore: 503", "", 0},
		{"failed", job(ended(batchv1.JobFailed, "BackoffLimitExceeded")), []*corev1.Pod{podOf("", ran("restore", 4, "quorate: restore: it is damaged"))}, decide.JobFailed,
			"restore: it is damaged", "", 0},
		{"the deadline", job(ended(batchv1.JobFailed, "it was active for too long")), nil, decide.JobFailed, "it was active for too long", "", 0},
		{"restored", job(ended(batchv1.JobComplete, "")), []*corev1.Pod{podOf("", ran("restore", 0, restored)), podOf("", ran("restore", 1, "no"))},
			decide.JobSucceeded, "", well, 0},
		{"copied", copies(job(ended(batchv1.JobComplete, ""))), []*corev1.Pod{podOf("", ran("copy", 0, ""), ran("restore", 0, restored), ran("compare-again", 0, ""))},
			decide.JobSucceeded, "", strings.Replace(well, "backup", "copy", 1), 0},
		{"copied by a pod that then failed", copies(job(ended(batchv1.JobComplete, ""))), []*corev1.Pod{podOf("", ran("copy", 0, ""), ran("restore", 0, restored), ran("compare-again", 1, "changed"))},
			decide.JobSucceeded, "", "", 0},
		{"ended after the pods were listed", job(ended(batchv1.JobComplete, "")), []*corev1.Pod{podOf("", waits("restore", "PodInitializing", ""))}, decide.JobRuns, "", "", 0},
		{"source changed during the copy", copies(job()), []*corev1.Pod{podOf("", ran("copy", 0, ""), ran("restore", 0, restored), ran("compare-again", 1, "quorate: compare: a has changed"))},
			decide.JobRuns, "compare-again: compare: a has changed", "", 0},
		{"restored beside a sidecar that failed", job(ended(batchv1.JobComplete, "")), []*corev1.Pod{podOf("", ran("istio-proxy", 143, ""), ran("restore", 0, restored))},
			decide.JobSucceeded, "", well, 0},
		{"restored, and nobody says what", job(ended(batchv1.JobComplete, "")), nil, decide.JobSucceeded, "", "", 0},
		{"restored, as somebody says", job(ended(batchv1.JobComplete, "")), []*corev1.Pod{podOf("", ran("restore", 0, "all is well"))}, decide.JobSucceeded, "", "", 0},
	} {
		got := RestoreJob(test.job, test.pods, made.Add(test.after))
		want := decide.RestoreJob{From: `tuesday\x1b[31m`, Restored: test.restored,
			VolumeJob: decide.VolumeJob{UID: "j1", Digest: "d1", VolumeUID: "v0", Phase: test.phase, Message: test.message}}
		if test.restored != "" {
			want.Data = decide.RestoredData{ClusterID: 0xc2, MemberID: 0xa1, Revision: 1000018204}
		}
		if got.From = strings.ReplaceAll(got.From, "\x1b", "!"); strings.Contains(got.From, "!") {
			t.Errorf("%s: an escape is kept", test.name)
		}
		want.From = got.From
		if got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
	}
}
