package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestDamagedNewestBackupIsSkipped checks that the newest backup does not count if it was found damaged after the
// status had recorded it. A good backup from an hour earlier, known from its pod, counts as the newest instead.
func TestDamagedNewestBackupIsSkipped(t *testing.T) {
	hour := time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)
	job := func(n int) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-backup-%d", n), UID: types.UID(fmt.Sprint("j", n)),
			CreationTimestamp: metav1.NewTime(hour.Add(time.Duration(n-1) * time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "CronJob", UID: "cron", Controller: ptr.To(true)}}}}
	}
	pod := func(n int, verify int32) *corev1.Pod {
		at := hour.Add(time.Duration(n-1) * time.Hour)
		word := fmt.Sprintf(`{"format":"quorate.dev/backup-result/v1","slot":"%s","data":"%s-18204-9c4bbfd4.db.zst",`+
			`"clusterID":"15082e1bb141d752","revision":1,"bytes":7,"sha256":"%s","startedAt":"%[1]s","finishedAt":"%[1]s","suspect":false}`,
			at.Format(time.RFC3339), at.Format("20060102t150405z"), strings.Repeat("a", 64))
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", n),
			OwnerReferences: []metav1.OwnerReference{{UID: types.UID(fmt.Sprint("j", n)), Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "backup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: word}}},
				{Name: "verify", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: verify}}}}}}
	}
	for _, order := range [][]int{{1, 2}, {2, 1}} {
		c := &cluster{names: objects.NamesOf("a"), target: targets.Target{}}
		c.target.Cluster.Name = "a"
		two := metav1.NewTime(hour.Add(time.Hour))
		custom := &v1alpha1.EtcdCluster{}
		custom.Status.Backup = &v1alpha1.BackupStatus{Last: &v1alpha1.BackupResult{Job: "a-backup-2", Slot: two,
			StartedAt: two, FinishedAt: two, ClusterID: "15082e1bb141d752"}}
		c.own = &inventory.Cluster{Custom: custom, Objects: map[string]metav1.Object{
			"CronJob/a-backup": &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "a-backup", UID: "cron"}}},
			BackupPods: []*corev1.Pod{pod(1, 0), pod(2, 4)}}
		for _, n := range order {
			c.own.BackupJobs = append(c.own.BackupJobs, job(n))
		}
		c.state = decide.State{Now: hour.Add(2 * time.Hour)}
		c.findBackups()
		if last := c.state.Backups.Last; last == nil || last.Job != "a-backup-1" {
			t.Errorf("order %v: the newest good backup is %+v, want that of a-backup-1", order, last)
		}
	}
}

// TestOverdueBackupIsDetected checks that observing a cluster detects an overdue backup from the declared schedule.
func TestOverdueBackupIsDetected(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	c := &cluster{names: objects.NamesOf("a"), target: targets.Target{}}
	c.target.Cluster.Name = "a"
	c.own = &inventory.Cluster{Custom: &v1alpha1.EtcdCluster{}}
	c.own.Custom.CreationTimestamp = metav1.NewTime(now.Add(-48 * time.Hour))
	c.state = decide.State{Now: now, Record: decide.Record{ClusterID: 0xc1}}
	c.findBackups()
	if c.state.Backups.Overdue {
		t.Error("no backup is declared, but one is overdue")
	}
	c.target.Cluster.Spec.Backup = &v1alpha1.BackupSpec{Schedule: "0 3 * * *", TimeZone: "Etc/UTC", Deadline: "1h"}
	c.findBackups()
	if b := c.state.Backups; !b.Overdue || !b.Due.Equal(now.Add(-48*time.Hour)) {
		t.Errorf("got %+v", b)
	}
}
