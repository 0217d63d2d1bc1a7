package scenarios

import (
	"fmt"
	"strings"
	"testing"
)

// TestNodeLoss stops a machine under a running cluster and starts it again. It disturbs all that runs on the node, so it runs alone.
func TestNodeLoss(t *testing.T) {
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	w.converge()
	id := w.requireOneCluster("a", 3)
	where := map[string]string{}
	for _, pod := range w.pods("a") {
		where[pod.Spec.NodeName] = pod.Name
	}
	if len(where) != 3 {
		t.Fatalf("the members do not spread over the nodes: %v", where)
	}
	lostNode, lost := "", "a-2"
	for name, pod := range where {
		if pod == lost {
			lostNode = name
		}
	}
	if err := w.stopNode(lostNode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.startNode(lostNode) })

	survivor := w.member("a", 0)
	eventually(t, "the others serve, with another leader if need be", func() error {
		ctx, cancel := survivor.ctx()
		defer cancel()
		_, err := survivor.Put(ctx, "node", "lost")
		return err
	})
	eventually(t, "the pass says who is missing", func() error {
		r := w.run()
		if c := r.cluster("a").Decision; c.Verdict == "Done" || c.Verdict == "Act" || !strings.Contains(c.Message, lost) {
			return fmt.Errorf("exit code %d, %s by %s: %s", r.code, c.Verdict, c.Rule, c.Message)
		}
		return nil
	})
	if s := w.status("a"); s.Membership != "2/3" || s.member(lost).Health != "Silent" || s.condition("Ready").Status == "True" {
		t.Errorf("status says %s, %+v, %+v", s.Membership, s.member(lost), s.condition("Ready"))
	}

	if err := w.startNode(lostNode); err != nil {
		t.Fatal(err)
	}
	w.waitForPods("a", 3)
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if got := w.member("a", 2).get("node"); got != "lost" {
		t.Errorf("the member that came back reads %q", got)
	}
}
