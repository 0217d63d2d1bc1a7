package scenarios

import (
	"encoding/json"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// backUpTinyKeys writes many keys without values, backs them up, and verifies and drills the backup. The pods of the
// Jobs have a quarter of the usual memory.
func (w *world) backUpTinyKeys(allowed []string) {
	w.t.Helper()
	const keys, each, memory = 300_000, 120, "64Mi"
	m := w.member("a", 0)
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for at := writer * each; at < keys; at += 4 * each {
				var puts []clientv3.Op
				for i := at; i < min(at+each, keys); i++ {
					puts = append(puts, clientv3.OpPut(fmt.Sprintf("tiny/%x", i), ""))
				}
				ctx, cancel := m.ctx()
				_, err := m.Txn(ctx).Then(puts...).Commit()
				if cancel(); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	w.jobWithin(memory, "backup", "tiny")
	w.awaitJob("tiny")
	w.jobWithin(memory, "drill", "tiny-drill")
	w.awaitJob("tiny-drill")
	drilled := w.awaitBackup(allowed, func(b backupStatus) bool { return b.Drill.Job == "tiny-drill" })
	if d := drilled.Drill; d.Uncompared != "" {
		w.t.Errorf("got %+v", d)
	}
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.Delete(ctx, "tiny/", clientv3.WithPrefix()); err != nil {
		w.t.Error(err)
	}
}

// jobWithin starts a Job from a CronJob of cluster a, with the given amount of memory for all containers except etcd.
func (w *world) jobWithin(memory, kind, name string) {
	w.t.Helper()
	var job batchv1.Job
	text := w.kubectl("--namespace", w.namespace, "create", "job", "--from=cronjob/a-"+kind, name, "--dry-run=client", "--output=json")
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		w.t.Fatal(err)
	}
	pod := &job.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if c := &containers[i]; c.Name != "etcd" {
				c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
				c.Resources.Requests = nil
			}
		}
	}
	if _, err := w.kube.BatchV1().Jobs(w.namespace).Create(w.ctx(), &job, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
