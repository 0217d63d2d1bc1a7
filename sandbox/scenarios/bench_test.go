package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const benchRuns = 5

// figure prints a measured value.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.3g %s\n", name, value, unit)
}

// BenchmarkFounding measures the time from a git push to three healthy voters. In the same run, it measures the time
// that a bare etcd StatefulSet, with volumes and without TLS, takes after it is applied.
func BenchmarkFounding(b *testing.B) {
	var quorate, converged, bare, peak []float64
	for range benchRuns {
		b.StopTimer()
		w := newWorld(b)
		b.StartTimer()
		start := time.Now()
		w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
		p := w.start(outside, "run", "--until-converged", "--timeout", patience.String())
		quorate = append(quorate, w.untilVoting(start).Seconds())
		r := p.wait().requireCode(b, exitDone)
		converged, peak = append(converged, time.Since(start).Seconds()), append(peak, float64(r.peak)/(1<<20))
		b.StopTimer()
		w.deleteAll()

		w = newWorld(b)
		start = time.Now()
		w.apply(bareThree)
		bare = append(bare, w.untilVoting(start).Seconds())
		w.deleteAll()
	}
	figure("push_to_three_voters_seconds", median(quorate), "s")
	figure("push_to_converged_seconds", median(converged), "s")
	figure("bare_to_three_voters_seconds", median(bare), "s")
	figure("push_to_three_voters_ratio", median(quorate)/median(bare), "ratio")
	figure("founding_memory", slices.Max(peak), "MiB")
}

// BenchmarkQuietPass measures the cost of a pass that finds nothing to do.
func BenchmarkQuietPass(b *testing.B) {
	w := newWorld(b)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.converge()
	proxy := w.newProxy()
	for _, v := range []struct {
		name string
		vantage
	}{{"outside", through(proxy)}, {"inside", inside}} {
		var took, peak []float64
		for range benchRuns {
			proxy.Break(nil)
			r := w.runFrom(v.vantage, "run", "--detailed-exitcode", patientWithEtcd).requireCode(b, exitDone)
			took, peak = append(took, float64(r.took.Milliseconds())), append(peak, float64(r.peak)/(1<<20))
		}
		if v.proxy != nil {
			figure("quiet_pass_requests", float64(len(proxy.Requests())), "requests")
			figure("quiet_pass_writes", float64(len(proxy.Writes())), "requests")
		}
		figure("quiet_pass_time_"+v.name, median(took), "ms")
		figure("quiet_pass_memory_"+v.name, slices.Max(peak), "MiB")
	}
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// untilVoting waits until a-0, a-1 and a-2 all respond as voters that know the leader, and returns the time since
// start.
func (w *world) untilVoting(start time.Time) time.Duration {
	w.t.Helper()
	errs := make([]error, 3)
	var group sync.WaitGroup
	for ordinal := range 3 {
		group.Go(func() {
			errs[ordinal] = poll(w.ctx(), patience, func() error { return w.votes("a", ordinal) })
		})
	}
	group.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.requireOneCluster("a", 3)
	return took
}

func (w *world) votes(cluster string, ordinal int) error {
	m, err := w.connectTo(cluster, ordinal)
	if err != nil {
		return err
	}
	defer m.close()
	m.timeout = 300 * time.Millisecond
	ctx, cancel := m.ctx()
	defer cancel()
	answer, err := m.Status(ctx, m.endpoint)
	if err != nil {
		return err
	}
	if answer.Leader == 0 || answer.IsLearner {
		return fmt.Errorf("%s does not vote yet", m.name)
	}
	return nil
}

// bareThree is a typical hand-written setup: a headless Service, and a StatefulSet with three replicas that has volumes
// but no TLS.
const bareThree = `
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {etcd: a}
  ports: [{name: client, port: 2379}, {name: peer, port: 2380}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec:
  serviceName: a
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {etcd: a}}
  template:
    metadata: {labels: {etcd: a}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: etcd
        image: gcr.io/etcd-development/etcd:v` + modern + `
        imagePullPolicy: IfNotPresent
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true}
        env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        command: [etcd, --name=$(POD), --data-dir=/data/etcd, --listen-client-urls=http://0.0.0.0:2379, --listen-peer-urls=http://0.0.0.0:2380,
          "--advertise-client-urls=http://$(POD).a:2379", "--initial-advertise-peer-urls=http://$(POD).a:2380",
          "--initial-cluster=a-0=http://a-0.a:2380,a-1=http://a-1.a:2380,a-2=http://a-2.a:2380"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}
`

// apply creates the Service and the StatefulSet in text.
func (w *world) apply(text string) {
	w.t.Helper()
	for i, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.t.Fatal(err)
		}
		kind := services
		if i == 1 {
			kind = statefulSets
		}
		if _, err := w.objects.Resource(kind).Namespace(w.namespace).Create(w.ctx(), object, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// deleteAll deletes the namespace and waits until it is gone. Otherwise, the deletion would disturb the next run,
// because the Kubernetes controllers remain busy for seconds after the last pod is deleted.
func (w *world) deleteAll() {
	w.t.Helper()
	w.leave()
	eventually(w.t, "the namespace goes", func() error {
		_, err := w.kube.CoreV1().Namespaces().Get(w.ctx(), w.namespace, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s is there", w.namespace)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		volumes, err := w.kube.CoreV1().PersistentVolumes().List(w.ctx(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, v := range volumes.Items {
			if v.Spec.ClaimRef != nil && v.Spec.ClaimRef.Namespace == w.namespace {
				return fmt.Errorf("volume %s is left", v.Name)
			}
		}
		return nil
	})
}
