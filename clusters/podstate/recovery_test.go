package podstate

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRecoveryJob checks the result of a recovery Job and the new cluster. The result is accepted only if it is for the
// cluster for which the Job was created.
func TestRecoveryJob(t *testing.T) {
	const word = `{"format":"quorate.dev/recovery-result/v1","lostClusterID":"00000000000000c1","lostMemberID":"00000000000000a1","term":2,"index":308,` +
		`"revision":301,"newRevision":1000000301,"startedAt":"2026-11-23T18:00:00Z","finishedAt":"2026-11-23T18:00:09Z","suspect":false,` +
		`"clusterID":"00000000000000c2","memberID":"00000000000000b1"}`
	job := func(lost, ordinal string, conditions ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-recovery", UID: "j1", CreationTimestamp: metav1.NewTime(made), Annotations: map[string]string{
			objects.AnnotationRecoveryDigest: "d1", objects.AnnotationVolume: "v1", objects.AnnotationLostCluster: lost, objects.AnnotationOrdinal: ordinal}},
			Status: batchv1.JobStatus{Conditions: conditions}}
	}
	const restored = `{"format":"quorate.dev/restore-result/v1","slot":"2026-11-22T18:00:00Z","data":"20261122t180000z-18204-9c4bbfd4.db.zst",` +
		`"sourceClusterID":"00000000000000c1","revision":18204,"newRevision":1000018204,"bytes":77856,"sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",` +
		`"startedAt":"2026-11-23T18:00:00Z","finishedAt":"2026-11-23T18:00:09Z","suspect":true,"clusterID":"00000000000000c4","memberID":"00000000000000b1"}`
	well := ended(batchv1.JobComplete, "")
	for _, test := range []struct {
		name    string
		job     *batchv1.Job
		pods    []*corev1.Pod
		phase   decide.JobPhase
		cluster decide.ID
		ordinal int
		message string
		into    decide.ID
	}{
		{"running", job("c1", "1"), nil, decide.JobRuns, 0xc1, 1, "", 0},
		{"failing", job("c1", "1"), []*corev1.Pod{podOf("", ran("prepare", 1, "quorate: recover: it is a learner"))}, decide.JobRuns, 0xc1, 1, "prepare: recover: it is a learner", 0},
		{"done", job("c1", "1", well), []*corev1.Pod{podOf("", ran("recover", 0, word))}, decide.JobSucceeded, 0xc1, 1, "", 0xc2},
		{"of another cluster", job("c3", "1", well), []*corev1.Pod{podOf("", ran("recover", 0, word))}, decide.JobSucceeded, 0xc3, 1, "", 0},
		{"silent", job("c1", "0", well), nil, decide.JobSucceeded, 0xc1, 0, "", 0},
		{"as somebody says", job("c1", "0", well), []*corev1.Pod{podOf("", ran("recover", 0, "all is well"))}, decide.JobSucceeded, 0xc1, 0, "", 0},
		{"changed by somebody", job("", "1"), nil, decide.JobRuns, 0, 0, "", 0},
		{"changed in another way", job("c1", "one"), nil, decide.JobRuns, 0, 0, "", 0},
	} {
		got := RecoveryJob(test.job, test.pods, made)
		want := decide.RecoveryJob{ClusterID: test.cluster, Ordinal: test.ordinal, Into: test.into,
			VolumeJob: decide.VolumeJob{UID: "j1", Digest: "d1", VolumeUID: "v1", Phase: test.phase, Message: test.message}}
		if got != want {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
	}

	from := job("c1", "1", well)
	from.Annotations[objects.AnnotationRestoreFrom] = "tuesday\x1b"
	got := RecoveryJob(from, []*corev1.Pod{podOf("", ran("restore", 0, restored))}, made)
	if got.Into != 0xc4 || !got.Suspect || !strings.HasPrefix(got.Restored, "the suspect backup 2026-11-22T18:00:00Z") || !strings.HasPrefix(got.From, "tuesday") ||
		strings.Contains(got.From, "\x1b") {
		t.Errorf("from a backup: %+v", got)
	}
	for name, said := range map[string]corev1.ContainerStatus{"of another container": ran("recover", 0, word), "no word": ran("restore", 0, word)} {
		if got := RecoveryJob(from, []*corev1.Pod{podOf("", said)}, made); got.Into != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := RecoveryJob(job("c1", "1", well), []*corev1.Pod{podOf("", ran("restore", 0, restored))}, made); got.Into != 0 {
		t.Errorf("a restore that was not ordered: %+v", got)
	}
}
