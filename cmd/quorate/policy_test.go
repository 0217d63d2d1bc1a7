package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// tolerating declares a cluster whose pods tolerate a taint. The cluster is suspended, so that a pass only records the
// declaration.
func tolerating(namespace, name string) string {
	return fmt.Sprintf("{apiVersion: etcd.quorate.dev/v1alpha1, kind: EtcdCluster, metadata: {name: %s, namespace: %s},\n"+
		" spec: {version: 3.6.16, lifecycle: Stopped, suspend: true,\n  pod: {tolerations: [{key: dedicated, operator: Exists}]}}}\n", name, namespace)
}

// says runs a command, with access to the Kubernetes cluster unless the command is validate.
func (w *tenants) says(command string, args ...string) ran {
	w.Helper()
	args = append([]string{command}, args...)
	if command == "validate" {
		return w.bare(args...)
	}
	return w.command(args...)
}

// TestPolicyViolationAffectsOnlyItsCluster checks that forbidden pod settings cause a problem only for the cluster that
// declares them. This applies to plans and runs, to custom resources that are themselves the declarations, and to
// clusters that were applied while the settings were still allowed, whether or not git can be read.
func TestPolicyViolationAffectsOnlyItsCluster(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "a", "b")
	w.push("a", tolerating("a", "one"), "a/two")
	w.push("b", "b/one")
	w.made("a/one", "a/two", "b/one")
	const allowed = ",allow-toleration=dedicated"
	source, other := w.repository("a")+",allow-namespace=a", w.repository("b")+",allow-namespace=b"
	const refused = `spec.pod.tolerations[0]: tolerating "dedicated" with any value is not allowed; policy.tolerations allows none`

	for _, command := range []string{"validate", "plan", "run"} {
		got := w.says(command, "--source", source, "--source", other)
		if got.code != exitInvalid || !strings.Contains(got.out, "0.yaml:3: "+refused) {
			t.Errorf("%s: %d %s%s", command, got.code, got.out, got.err)
		}
	}
	tolerated := func() int { return len(w.cluster("a/one").Spec.Pod.Tolerations) }
	if tolerated() > 0 {
		t.Error("a refused declaration is applied")
	}

	if got := w.says("run", "--source", source+allowed, "--source", other); got.code != exitOK || tolerated() == 0 {
		t.Fatalf("allowed: %d %s%s", got.code, got.out, got.err)
	}
	stalled := func(when string, code int, args ...string) {
		t.Helper()
		got := w.says("run", args...)
		if condition := w.condition("a/one", v1alpha1.ConditionStalled); got.code != code || !strings.Contains(condition, "Stalled=True") || !strings.Contains(condition, refused) {
			t.Errorf("%s: %d %s\n%s%s", when, got.code, condition, got.out, got.err)
		}
		for _, name := range []string{"a/two", "b/one"} {
			if condition := w.condition(name, v1alpha1.ConditionStalled); !strings.Contains(condition, "Stalled=False") {
				t.Errorf("%s: %s: %s", when, name, condition)
			}
		}
	}
	stalled("allowed no longer", exitInvalid, "--source", source, "--source", other)
	if err := os.Rename(w.repository("a"), w.repository("a")+"-gone"); err != nil {
		t.Fatal(err)
	}
	stalled("no longer allowed, and the source cannot be read", exitError, "--source", source, "--source", other)
	if got := w.says("run", "--source", source+allowed, "--source", other); !strings.Contains(w.condition("a/one", v1alpha1.ConditionStalled), "Stalled=False") {
		t.Errorf("allowed, and the source cannot be read: %d %s%s", got.code, got.out, got.err)
	}
	stalled("declares itself", exitInvalid, "--source", "cluster", "sourceDefaults.policy.tolerations=")
	if got := w.says("run", "--source", "cluster"); got.code != exitOK {
		t.Errorf("declares itself, and everything is allowed: %d %s%s", got.code, got.out, got.err)
	}
}
