package scenarios

import (
	"fmt"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watch scrapes the loops and the members with a real Prometheus, which must have all series that dashboards and alerts
// use. There must be no alerts while everything is healthy, and only the expected alerts while a member hangs.
func (m *walked) watch() {
	m.t.Helper()
	m.backUp(m.mode)
	of := m.monitoring()
	p := m.startPrometheus(of)
	members := 0
	for path := range m.files {
		if members++; path == "clusters/a.yaml" {
			members += 2
		}
	}
	p.requireTargets(map[string]int{systemNamespace + "/etcd": members, systemNamespace + "/quorate": 2})
	p.requireRules(of)
	p.requireDashboards(of.dashboards, map[string]string{"namespace": m.namespace, "name": m.mode})
	p.requireAlerts("all is well")

	m.signal("a-1", syscall.SIGSTOP)
	p.requireAlerts("a member hangs", "EtcdClusterNotReady firing a", "EtcdMemberNotScraped firing a a-1")
	m.signal("a-1", syscall.SIGCONT)
	p.requireAlerts("it goes on")
}

// backUp backs up a single-member cluster to a volume twice, and drills one of the backups, so that all backup series
// exist.
func (m *walked) backUp(name string) {
	m.t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "backups"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Mi")}},
		},
	}
	if _, err := m.kube.CoreV1().PersistentVolumeClaims(m.namespace).Create(m.ctx(), claim, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	m.files["clusters/"+name+".yaml"] = declaration(name, modern, one,
		`backup: {schedule: "@yearly", to: {volume: {claimName: backups}}, drill: {schedule: "@yearly"}}`)
	m.push("backups are declared", "Converged", three)
	m.untilBackedUp(name, "a first backup", func(b backupStatus) bool { return b.Last.Verified })
	for _, kind := range []string{"backup", "drill"} {
		m.kubectl("--namespace", m.namespace, "create", "job", "--from=cronjob/"+name+"-"+kind, "now-"+kind)
		m.awaitJob("now-" + kind)
	}
	m.untilBackedUp(name, "a drill", func(b backupStatus) bool { return b.Last.Job == "now-backup" && b.Drill.Job == "now-drill" })
}

// untilBackedUp waits until wanted accepts the backup status.
func (m *walked) untilBackedUp(name, what string, wanted func(backupStatus) bool) {
	m.t.Helper()
	m.until(what, func() error {
		found, err := m.backupsOf(name)
		if err != nil {
			return err
		}
		if !wanted(found) {
			return fmt.Errorf("%+v", found)
		}
		return nil
	})
}
