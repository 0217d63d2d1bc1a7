package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testAvailability(t *testing.T, w *world) {
	w.requireOneCluster("a", 3)
	w.member("a", 0).put("availability", "yes")
	for ordinal := range 3 {
		if got := w.member("a", ordinal).get("availability"); got != "yes" {
			t.Errorf("a-%d reads %q", ordinal, got)
		}
	}
	endpoints, err := w.kube.DiscoveryV1().EndpointSlices(w.namespace).List(w.ctx(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=a-client"})
	if err != nil {
		t.Fatal(err)
	}
	ready := 0
	for _, slice := range endpoints.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
	}
	if ready != 3 {
		t.Errorf("the client Service has %d ready members, want 3", ready)
	}
}

func testPodDisruptionBudget(t *testing.T, w *world) {
	eventually(t, "the budget allows one disruption", func() error {
		budget, err := w.kube.PolicyV1().PodDisruptionBudgets(w.namespace).Get(w.ctx(), "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if budget.Status.DisruptionsAllowed != 1 || budget.Status.DesiredHealthy != 2 {
			return fmt.Errorf("%d disruptions allowed, %d pods wanted healthy", budget.Status.DisruptionsAllowed, budget.Status.DesiredHealthy)
		}
		return nil
	})
	uids := w.podUIDs("a")
	if err := w.evict("a-0"); err != nil {
		t.Fatalf("the first eviction is refused: %v", err)
	}
	if err := w.evict("a-1"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a second eviction at the same time is not refused: %v", err)
	}
	w.waitForPods("a", 3)
	if now := w.podUIDs("a"); now["a-0"] == uids["a-0"] || now["a-1"] != uids["a-1"] {
		t.Errorf("pods before %v, after %v; only a-0 was to be evicted", uids, now)
	}
	w.converge()
}

func (w *world) evict(pod string) error {
	return w.kube.PolicyV1().Evictions(w.namespace).Evict(w.ctx(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: w.namespace}})
}

// testPodRecovery checks that a pod recovers without a pass, as the same member with the same data.
func testPodRecovery(t *testing.T, w *world) {
	w.member("a", 1).put("recovery", "before")
	before, err := w.member("a", 1).list()
	if err != nil {
		t.Fatal(err)
	}
	w.deletePod("a-0")
	w.member("a", 2).put("recovery", "meanwhile")
	w.waitForPods("a", 3)
	w.requireOneCluster("a", 3)
	m := w.member("a", 0)
	if got := m.get("recovery"); got != "meanwhile" {
		t.Errorf("the pod that came back reads %q", got)
	}
	after, err := m.list()
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("members before %v, after %v, %v", before, after, err)
	}
	w.converge().requireRule(t, "a", "Converged")
}

// testDataPersistence checks that no data is lost if all pods are lost at the same time.
func testDataPersistence(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 0).put("persistence", "kept")
	for ordinal := range 3 {
		w.deletePod(fmt.Sprintf("a-%d", ordinal))
	}
	w.waitForPods("a", 3)
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if got := w.member("a", 0).get("persistence"); got != "kept" {
		t.Errorf("the data came back as %q", got)
	}
	w.converge().requireRule(t, "a", "Converged")
}

// testPersistence deletes the custom resource and all objects of the cluster except the volumes. It checks that the
// next pass starts the members again with their data.
func testPersistence(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 0).put("deleted", "not the data")
	volumes := w.volumeUIDs("a")
	if err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Delete(w.ctx(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "everything but the volumes goes", func() error {
		if left := w.ownObjects("a"); len(left) > 0 {
			return fmt.Errorf("still there: %s", strings.Join(left, ", "))
		}
		return nil
	})
	w.converge()
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if now := w.volumeUIDs("a"); !maps.Equal(volumes, now) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	if got := w.member("a", 2).get("deleted"); got != "not the data" {
		t.Errorf("the data came back as %q", got)
	}
	w.requireQuiet("a")
}

// testSeedDataDirLoss checks that the first initial member does not bootstrap a second cluster after it has lost its
// volume. It must stay down until a pass replaces it.
func testSeedDataDirLoss(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 1).put("seed", "safe")
	volume := w.volumeUIDs("a")["a-0"]
	if err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Delete(w.ctx(), "data-a-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.deletePod("a-0")
	eventually(t, "a-0 starts on an empty volume and gives up", func() error {
		if now := w.volumeUIDs("a")["a-0"]; now == "" || now == volume {
			return fmt.Errorf("the volume is %q", now)
		}
		pod, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), "a-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses; len(s) == 0 || s[0].RestartCount == 0 {
			return fmt.Errorf("it has not given up: %s", describePod(*pod))
		}
		return nil
	})

	for _, ordinal := range []int{1, 2} {
		m := w.member("a", ordinal)
		m.put("seed", fmt.Sprint("still safe ", ordinal))
		answer, err := m.Status(t.Context(), m.endpoint)
		if err != nil || fmt.Sprintf("%x", answer.Header.ClusterId) != id {
			t.Errorf("a-%d is in cluster %x, not in %s: %v", ordinal, answer.Header.ClusterId, id, err)
		}
	}
	if m, err := w.connectTo("a", 0); err == nil {
		defer m.close()
		ctx, cancel := m.ctx()
		defer cancel()
		if answer, err := m.Status(ctx, m.endpoint); err == nil {
			t.Errorf("a-0 runs as member of cluster %x", answer.Header.ClusterId)
		}
	}
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if got := w.member("a", 0).get("seed"); got != "still safe 2" {
		t.Errorf("the member in its place reads %q", got)
	}
}

func (w *world) deletePod(name string) {
	w.t.Helper()
	if err := w.kube.CoreV1().Pods(w.namespace).Delete(w.ctx(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// waitForPods waits until the cluster has exactly n pods, all of them ready and not terminating.
func (w *world) waitForPods(cluster string, n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d ready pods of %s", n, cluster), func() error {
		pods := w.pods(cluster)
		var wrong []string
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil || !ready(pod) {
				wrong = append(wrong, pod.Name+": "+describePod(pod))
			}
		}
		if len(pods) != n || len(wrong) > 0 {
			return fmt.Errorf("%d pods; not ready: %s", len(pods), strings.Join(wrong, ", "))
		}
		return nil
	})
}

func ready(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
