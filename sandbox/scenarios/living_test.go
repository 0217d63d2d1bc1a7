package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testSamePodHostsTheNext deletes a volume and its pod, and starts a run immediately. When the member is removed, the
// replacement pod already exists and is waiting for its volume, so the same pod runs the next member. A process that
// has been running the whole time must make the same decisions as a new process.
func testSamePodHostsTheNext(t *testing.T, w *world) {
	before := w.podUIDs("a")["a-1"]
	w.loseVolume("a-1")
	eventually(t, "the end of a-1", func() error {
		if uid := w.podUIDs("a")["a-1"]; uid == before {
			return fmt.Errorf("pods %v", w.podUIDs("a"))
		}
		return nil
	})
	p := w.start(outside, "run", "--until-converged", "--timeout", "60s", setting("kubernetes.leaseDuration", "3s"), setting("log.format", "json"))
	r := w.besidePlans(p).requireCode(t, exitDone)
	r.requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 3)
}

// steady is the maximum time for which the decisions of two processes may differ. One process may see a change first,
// but both observe the cluster again within a second.
const steady = 3 * time.Second

// moment is the rule that a process applied to cluster a at some time.
type moment struct {
	at   time.Time
	rule string
}

// besidePlans waits for a run to end, and starts new processes that plan in the meantime. If the run keeps applying
// one rule while the plans keep applying a different one, the run depends on remembered state that new processes do
// not have.
func (w *world) besidePlans(p *process) result {
	w.t.Helper()
	ended := make(chan result, 1)
	go func() { ended <- p.wait() }()
	var plans []moment
	for {
		select {
		case r := <-ended:
			w.requireSameRules(r, plans)
			return r
		case <-time.After(500 * time.Millisecond):
			plans = append(plans, moment{time.Now(), w.runFrom(outside, "plan").cluster("a").Decision.Rule})
		}
	}
}

func (w *world) requireSameRules(r result, plans []moment) {
	w.t.Helper()
	said := decided(r)
	for i, first := range plans {
		for _, last := range plans[i:] {
			if last.rule != first.rule {
				break
			}
			if rule, whole := during(said, first.at, last.at); whole && rule != first.rule && last.at.Sub(first.at) > steady {
				w.t.Fatalf("from %s to %s, the run applied %s, and new processes applied %s:\n%s", first.at.Format(time.TimeOnly), last.at.Format(time.TimeOnly), rule, first.rule, r)
			}
		}
	}
}

// decided reads a run's decisions from its log, which contains a decision only if it differs from the previous one.
func decided(r result) []moment {
	var said []moment
	for line := range strings.Lines(r.stderr) {
		entry := struct {
			Time               time.Time
			Msg, Cluster, Rule string
		}{}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "decided" && strings.HasSuffix(entry.Cluster, "/a") {
			said = append(said, moment{entry.Time, entry.Rule})
		}
	}
	return said
}

// during returns the rule that a run applied throughout a period. whole is false if it applied several rules.
func during(said []moment, from, to time.Time) (rule string, whole bool) {
	for _, m := range said {
		switch {
		case !m.at.After(from):
			rule = m.rule
		case m.at.Before(to) && m.rule != rule:
			return "", false
		}
	}
	return rule, rule != ""
}

// testRelabelledVolume checks that a volume is not considered lost if a policy engine changes the label that
// identifies it and its pod stops responding. Nothing is changed until the label is restored.
func testRelabelledVolume(t *testing.T, w *world) {
	members, volumes := w.memberIDs("a"), w.volumeUIDs("a")
	label := func(value string) {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":%q}}}`, value)
		_, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Patch(w.ctx(), "data-a-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	label("policy-engine")
	w.signal("a-1", syscall.SIGSTOP) // so that the member does not respond either
	r := w.run().requireCode(t, exitBlocked).requireRule(t, "a", "LabelsLost")
	if !r.says("PersistentVolumeClaim data-a-1 has lost app.kubernetes.io/managed-by=quorate") {
		t.Errorf("it does not report which label to restore:\n%s", r)
	}
	w.signal("a-1", syscall.SIGCONT)
	label("quorate")
	w.converge().requireRule(t, "a", "Converged")
	w.requireSame(members, volumes, "")
}

// TestOnePassFoundsAndSeals checks that a single pass does not end between bootstrapping a cluster and sealing its
// members. Until then, a member that loses its volume could bootstrap the cluster again.
func TestOnePassFoundsAndSeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three)
	r := w.run("--detailed-exitcode").requireCode(t, exitChanges)
	if rule := r.cluster("a").Decision.Rule; rule == "Bootstrap" || rule == "WaitForFormation" {
		t.Errorf("the pass ends while the members form:\n%s", r)
	}
	record, err := w.object(configMaps, "a-members")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(record.Object["data"]), "initial-cluster-state: new") {
		t.Errorf("members may still bootstrap: %v", record.Object["data"])
	}
	w.converge()
	w.requireOneCluster("a", 3)
}
