package scenarios

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeLoss stops a node of a running cluster and starts it again. This disturbs everything on the node, so the test
// does not run in parallel with others.
func TestNodeLoss(t *testing.T) {
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.converge()
	id, members := w.requireOneCluster("a", 3), w.memberIDs("a")
	const lost = "a-2"
	lostNode := w.nodeOf(lost)
	if err := w.stopNode(lostNode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.startNode(lostNode) })

	w.member("a", 0).waitForQuorum()
	eventually(t, "the pass says who is missing", func() error {
		r := w.run()
		if c := r.cluster("a").Decision; c.Verdict == "Done" || c.Verdict == "Act" || !strings.Contains(c.Message, lost) {
			return fmt.Errorf("exit code %d, %s by %s: %s", r.code, c.Verdict, c.Rule, c.Message)
		}
		return nil
	})
	if s := w.status("a"); s.Voters != "2/3" || s.member(lost).Health != "Unreachable" || s.condition("Ready").Status == "True" {
		t.Errorf("the status has %s, %+v, %+v", s.Voters, s.member(lost), s.condition("Ready"))
	}

	if err := w.startNode(lostNode); err != nil {
		t.Fatal(err)
	}
	w.waitForPods("a", 3)
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if now := w.memberIDs("a"); !maps.Equal(now, members) {
		t.Errorf("members before %v, after %v", members, now)
	}
	if got := w.member("a", 2).get("written"); got != "a-0" {
		t.Errorf("the member that came back does not have the last write, but %q", got)
	}
}

// nodeOf returns a pod's node. It fails the test unless the members of cluster a are spread over all nodes.
func (w *world) nodeOf(pod string) string {
	w.t.Helper()
	where := map[string]string{}
	for _, p := range w.pods("a") {
		where[p.Spec.NodeName] = p.Name
	}
	if len(where) != 3 {
		w.t.Fatalf("the members do not spread over the nodes: %v", where)
	}
	return w.pod(pod).Spec.NodeName
}

// TestNodeLossForGood checks that a member is replaced on a different node if its node, and therefore its volume, is
// permanently lost.
func TestNodeLossForGood(t *testing.T) {
	w := newWorld(t)
	w.declare(modern, three, "replaceAfter: 20s")
	w.converge()
	id, members := w.requireOneCluster("a", 3), w.memberIDs("a")
	lost := w.nodeOf("a-2")
	w.member("a", 2).put("node", "gone")
	if err := w.stopNode(lost); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.startNode(lost) })
	history := w.watchWrites(3)
	if r := w.run(); r.cluster("a").Decision.Verdict != "Wait" {
		t.Errorf("a node that may come back:\n%s", r)
	}
	if err := w.kube.CoreV1().Nodes().Delete(w.ctx(), lost, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.converge("--timeout", "150s").requireRule(t, "a", "Converged")
	history.end()
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if now := w.memberIDs("a"); changed(members, now) != 1 || now["a-2"] == members["a-2"] {
		t.Errorf("members before %v, after %v", members, now)
	}
	if got := w.member("a", 2).get("node"); got != "gone" {
		t.Errorf("the member in its place reads %q", got)
	}
	if err := w.startNode(lost); err != nil {
		t.Fatal(err)
	}
	w.converge().requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 3)
}

// TestDrain drains nodes as for an upgrade. The disruption budget allows one member to be evicted and protects the
// others. Members are not replaced. Only this test's pods, which have their own label, are drained, because the nodes
// may also run pods of other tests.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	w.declare(modern, three, "pod: {labels: {to: drain}}")
	w.converge()
	members := w.memberIDs("a")
	first, second := w.nodeOf("a-0"), w.nodeOf("a-1")
	t.Cleanup(func() { w.kubectl("uncordon", first, second) })
	history := w.watchWrites(3)
	drain := []string{"drain", "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=to=drain", "--timeout=8s"}
	w.kubectl(append(drain, first)...)
	if out, err := w.tryKubectl(append(drain, second)...); err == nil || !strings.Contains(out, "disruption budget") {
		t.Errorf("a second node is drained in addition to the first: %v\n%s", err, out)
	}
	if r := w.run(); r.cluster("a").Decision.Verdict != "Wait" || !strings.Contains(r.cluster("a").Decision.Message, "a-0") {
		t.Errorf("while a node is drained:\n%s", r)
	}
	w.kubectl("uncordon", first)
	w.waitForPods("a", 3)
	w.kubectl(append(drain, second)...)
	w.kubectl("uncordon", second)
	w.waitForPods("a", 3)
	w.converge().requireRule(t, "a", "Converged")
	history.end()
	w.requireOneCluster("a", 3)
	if now := w.memberIDs("a"); !maps.Equal(now, members) {
		t.Errorf("members before %v, after %v", members, now)
	}
}
