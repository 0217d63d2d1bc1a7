package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sixty is the number of single-member clusters that a push declares at the same time.
const sixty = 60

// BenchmarkSixty bootstraps sixty single-member clusters with one push, on real nodes. For comparison, it applies sixty
// bare etcd StatefulSets with one member each, with volumes and without TLS. Both measurements end when all pods are
// ready. For Quorate, there must also be a pass that has nothing left to do.
func BenchmarkSixty(b *testing.B) {
	w := newWorld(b)
	start := time.Now()
	w.applySixtyBare()
	bare := w.untilAllReady(start)
	w.deleteAll()

	w = newWorld(b)
	files := map[string]string{}
	for n := range sixty {
		name := fmt.Sprintf("c%02d", n)
		files[name+".yaml"] = declaration(name, modern, one)
	}
	start = time.Now()
	w.repository.push(files)
	p := w.start(inside, "run", "--until-converged", "--timeout", passLimit.String())
	ready := w.untilAllReady(start)
	r := p.wait().requireCode(b, exitDone)
	took := max(ready, time.Since(start))
	w.deleteAll()

	name := func(what string) string { return fmt.Sprintf("fleet_%d_%s", sixty, what) }
	figure(name("founded_seconds"), took.Seconds(), "s")
	figure(name("bare_seconds"), bare.Seconds(), "s")
	figure(name("founded_ratio"), took.Seconds()/bare.Seconds(), "ratio")
	figure(name("founded_memory"), float64(r.peak)/(1<<20), "MiB")
	used := p.command.ProcessState
	figure(name("founded_cpu_seconds"), (used.UserTime() + used.SystemTime()).Seconds(), "s")
}

// untilAllReady waits until the pods of all sixty clusters are ready, and returns the time since start.
func (w *world) untilAllReady(start time.Time) time.Duration {
	w.t.Helper()
	watched := func() error {
		pods, err := w.kube.CoreV1().Pods(w.namespace).List(w.ctx(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < sixty {
			return fmt.Errorf("%d of %d pods are ready", ready, sixty)
		}
		return nil
	}
	if err := poll(w.ctx(), passLimit, watched); err != nil {
		w.t.Fatal(err)
	}
	return time.Since(start)
}

// applySixtyBare creates sixty hand-written setups with one member each.
func (w *world) applySixtyBare() {
	w.t.Helper()
	single := strings.NewReplacer(
		"replicas: 3", "replicas: 1",
		"volumeMounts:", "readinessProbe: {httpGet: {path: /readyz, port: 2379}, periodSeconds: 1}\n        volumeMounts:",
		"a-0=http://a-0.a:2380,a-1=http://a-1.a:2380,a-2=http://a-2.a:2380", "a-0=http://a-0.a:2380",
	).Replace(bareThree)
	for n := range sixty {
		name := fmt.Sprintf("c%02d", n)
		w.apply(strings.NewReplacer("name: a}", "name: "+name+"}", "etcd: a}", "etcd: "+name+"}",
			"serviceName: a\n", "serviceName: "+name+"\n", "a-0", name+"-0", ".a:", "."+name+":").Replace(single))
	}
}
