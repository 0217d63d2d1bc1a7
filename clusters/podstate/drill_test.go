package podstate

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/reconcile/decide"
)

// TestDrillJob checks the result of a drill Job. A pod's result is accepted only if it is plausible.
func TestDrillJob(t *testing.T) {
	word := func(slot, finished time.Time) string {
		return fmt.Sprintf(`{"format":"quorate.dev/drill-result/v1","slot":%q,"data":"%s-12-160111ad.db.zst","clusterID":"00000000000000aa","revision":12,"bytes":20512,`+
			`"sha256":"da237d10a58234d08a9339ed7b6389dc56de52f2682cf5b566d523d8004a2f33","etcdVersion":"3.6.16","startedAt":%q,"finishedAt":%q,`+
			`"fetchSeconds":1.5,"restoreSeconds":0.25,"startSeconds":1.5}`, slot.Format(time.RFC3339), slot.UTC().Format("20060102t150405z"), finished.Format(time.RFC3339),
			finished.Format(time.RFC3339))
	}
	slot, finished := made.Add(-time.Hour).UTC(), made.Add(time.Minute).UTC()
	pod := func(code int32, message string) []*corev1.Pod {
		p := podOf("", ran("prepare", 0, ""), ran("drill", code, message))
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].State.Terminated.FinishedAt = metav1.NewTime(finished)
		}
		return []*corev1.Pod{p}
	}
	forged := pod(0, word(slot, finished.AddDate(1000, 0, 0)))
	forged[0].Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(finished.AddDate(1000, 0, 0))
	well, failed := ended(batchv1.JobComplete, ""), ended(batchv1.JobFailed, "it took too long")
	for _, test := range []struct {
		name       string
		conditions []batchv1.JobCondition
		pods       []*corev1.Pod
		want       string
	}{
		{"running", nil, nil, "<nil> <nil>"},
		{"well", []batchv1.JobCondition{well}, pod(0, word(slot, finished)), "a-drill-1 " + slot.Format(time.RFC3339) + " aa 3.6.16 4s 20512 <nil>"},
		{"well, and its word is gone", []batchv1.JobCondition{well}, nil, "<nil> <nil>"},
		{"as somebody says", []batchv1.JobCondition{well}, pod(0, "all is well"), "<nil> <nil>"},
		{"of a backup to come", []batchv1.JobCondition{well}, pod(0, word(made.Add(time.Hour).UTC(), finished)), "<nil> <nil>"},
		{"done in the future", []batchv1.JobCondition{well}, pod(0, word(slot, finished.Add(time.Hour))), "<nil> <nil>"},
		{"ended in the future", []batchv1.JobCondition{well}, forged, "<nil> <nil>"},
		{"failed", []batchv1.JobCondition{failed}, pod(4, "quorate: the backup is damaged"), "<nil> a-drill-1 drill: the backup is damaged"},
		{"failed without a pod", []batchv1.JobCondition{failed}, nil, "<nil> a-drill-1 it took too long"},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a-drill-1", CreationTimestamp: metav1.NewTime(made)}, Status: batchv1.JobStatus{Conditions: test.conditions}}
		done, fault := DrillJob(job, test.pods, finished.Add(time.Minute))
		if got := inWords(done) + " " + faultInWords(fault); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func inWords(d *decide.Drill) string {
	if d == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s %s %s %s %ds %d", d.Job, d.Slot.Format(time.RFC3339), d.ClusterID, d.EtcdVersion, d.Seconds, d.Bytes)
}

func faultInWords(f *decide.DrillFailure) string {
	if f == nil {
		return "<nil>"
	}
	return f.Job + " " + f.Message
}
