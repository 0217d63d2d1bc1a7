package scenarios

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testOrphan: a declaration that vanishes deletes nothing and stops nothing. Everybody is told, with the commit that dropped it.
func testOrphan(t *testing.T, w *world) {
	want, pods := w.snapshot(), w.podUIDs("a")
	commit := w.repository.push(map[string]string{"README": "no cluster here"})
	r := w.run().requireCode(t, exitDone).requireRule(t, "a", "Orphaned")
	if !r.says(commit[:7]) {
		t.Errorf("it does not say which commit dropped the declaration:\n%s", r)
	}
	w.disturb(disturbance{"budget deleted", budgets, "a", ""})
	w.run().requireCode(t, exitDone).requireRule(t, "a", "Orphaned")
	if _, err := w.object(budgets, "a"); err == nil {
		t.Error("an object of an orphan was put right")
	}
	proxy := w.newProxy()
	w.runFrom(through(proxy), "run").requireCode(t, exitDone)
	if writes := proxy.Writes(); len(writes) > 0 {
		t.Errorf("another pass over an orphan writes: %v", writes)
	}
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

// testRename: a cluster that git calls otherwise is not founded again, empty, under the other name.
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
		t.Errorf("something was made or touched: %s", touched)
	}
	if pods := w.pods("b"); len(pods) > 0 {
		t.Errorf("%d pods of b were made", len(pods))
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

// TestScaleByHand: kubectl scale works where git leaves replicas out; where git states them, git wins.
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
