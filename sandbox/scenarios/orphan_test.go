package scenarios

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testRemovalHeld pushes a commit that no longer declares any cluster, which may be a mistake. The removal is reported
// everywhere. The clusters are kept healthy as last declared, and become orphans once the commit is confirmed.
func testRemovalHeld(t *testing.T, w *world) {
	const deleted = "lifecycle: Deleted\nstorage: {retention: Delete}"
	a := declaration("a", modern, three)
	w.repository.push(map[string]string{"a.yaml": a, "c.yaml": declaration("c", modern, plain, one)})
	w.converge()
	id := w.requireOneCluster("a", 3)
	commit := w.repository.push(map[string]string{"README": "no cluster here"})
	for range 2 {
		r := w.run().requireCode(t, exitBlocked).requireRule(t, "a", "Converged").requireRule(t, "c", "Converged")
		if !r.says("--confirm-removals=main@sha1:" + commit) {
			t.Errorf("it does not explain how to confirm the removal:\n%s", r)
		}
	}
	w.requireCondition("a", "RemovalHeld", "True", "NotConfirmed")
	if n := w.toldOf("main@sha1:" + commit + " no longer declares it"); n != 2 {
		t.Errorf("reported %d times, want once for each cluster", n)
	}
	w.emptyVolumes("a-1")
	r := w.runFrom(outside, "run", "--until-converged", "--timeout", patience.String(), setting("kubernetes.leaseDuration", "3s"))
	r.requireCode(t, exitBlocked).requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became %s", id, got)
	}
	w.runFrom(outside, "plan").requireCode(t, exitBlocked)
	w.run("--confirm-removals", commit).requireCode(t, exitDone).requireRule(t, "a", "Orphaned").requireRule(t, "c", "Orphaned")
	w.run().requireCode(t, exitDone).requireRule(t, "a", "Orphaned")
	w.requireCondition("a", "RemovalHeld", "", "")

	// A cluster whose declared lifecycle is Deleted may be removed from git after its deletion.
	w.repository.push(map[string]string{"a.yaml": a, "c.yaml": declaration("c", modern, plain, one, deleted)})
	w.converge().requireRule(t, "a", "Converged")
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged").requireRule(t, "c", "Orphaned")
	if err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Delete(w.ctx(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testOrphan checks that nothing is deleted or stopped if a declaration vanishes. The removal is reported everywhere,
// with the commit that removed the declaration.
func testOrphan(t *testing.T, w *world) {
	want, pods := w.snapshot(), w.podUIDs("a")
	commit := w.repository.push(map[string]string{"README": "no cluster here"})
	r := w.run("--confirm-removals", commit).requireCode(t, exitDone).requireRule(t, "a", "Orphaned")
	if !r.says(commit[:7]) {
		t.Errorf("it does not report which commit dropped the declaration:\n%s", r)
	}
	w.disturb(disturbance{"budget deleted", budgets, "a", ""})
	w.run().requireCode(t, exitDone).requireRule(t, "a", "Orphaned")
	if _, err := w.object(budgets, "a"); err == nil {
		t.Error("an object of an orphan was repaired")
	}
	w.requireQuietBy("Orphaned", "a")
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("declared again: %s", wrong)
	}
	w.requireQuiet("a")
}

// testRename checks that a cluster that is renamed in git is not bootstrapped again, empty, under the new name.
func testRename(t *testing.T, w *world) {
	want, pods := w.snapshot(), w.podUIDs("a")
	w.repository.push(map[string]string{"b.yaml": declaration("b", modern, three)})
	r := w.run("--until-converged", "--timeout", "20s").requireCode(t, exitBlocked).requireRule(t, "b", "RenamedInGit")
	if said := r.cluster("b").Decision.Message; said == "" || !r.says("a") {
		t.Errorf("it does not explain: %s", said)
	}
	now := w.snapshot()
	delete(now, "EtcdCluster b")
	if touched := difference(want, now); touched != "" {
		t.Errorf("something was created or touched: %s", touched)
	}
	if pods := w.pods("b"); len(pods) > 0 {
		t.Errorf("%d pods of b were created", len(pods))
	}
	w.declare(modern, three)
	if err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Delete(w.ctx(), "b", metav1.DeleteOptions{}); err != nil {
		t.Logf("b has left nothing: %v", err)
	}
	w.converge().requireRule(t, "a", "Converged")
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
}

// TestScaleByHand checks that kubectl scale works if git does not set replicas. If git sets replicas, it overrides
// kubectl scale.
func TestScaleByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern)
	w.converge()
	w.requireSize(3)
	w.scaleByHand(4)
	w.converge()
	w.requireSize(4)
	w.requireQuiet("a")

	w.declare(modern, three)
	w.converge()
	w.requireSize(3)
	w.scaleByHand(5)
	if r := w.runFrom(outside, "plan", "--detailed-exitcode").requireCode(t, exitChanges); !r.says("replicas") {
		t.Errorf("the drift is not reported:\n%s", r)
	}
	w.converge()
	w.requireSize(3)
	if got := w.resource("a").Object["spec"].(map[string]any)["replicas"]; got != int64(3) {
		t.Errorf("the custom resource asks for %v replicas, git for 3", got)
	}
	w.requireQuiet("a")
}

func (w *world) scaleByHand(replicas int) {
	w.t.Helper()
	w.kubectl("--namespace", w.namespace, "scale", "etcdclusters.etcd.quorate.dev/a", fmt.Sprintf("--replicas=%d", replicas))
}
