package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestForgedStatusDoesNotReorderRules checks that a forged status cannot put a rule first by claiming that the rule was
// delayed, although it is not a repair. The rule must not precede the rule that protects against a changed CA: applying
// the objects would issue all certificates from the CA in the Secret while members trust a different CA.
func TestForgedStatusDoesNotReorderRules(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set record ca=CA1", "set ca secret=CA2 mounted=CA1")
	w.Declared.Lifecycle, w.Objects.Drift = "Stopped", []string{"StatefulSet a: changed at spec.replicas"}
	honest := decide.Decide(w.State)
	if honest.Rule != "CAChanged" || decide.KindOf(honest.Action) != "StopPods" {
		t.Fatal(honest)
	}
	w.Repeated = []decide.Repeated{{Rule: "Stop", What: "preempted", Times: 5, Last: w.Now}}
	if d := decide.Decide(w.State); d.Rule != "CAChanged" {
		t.Errorf("with a forged status: %s", d)
	}
}

// TestForgedStatusDoesNotDelaySeal checks the same for objects that would be applied before a member is sealed.
func TestForgedStatusDoesNotDelaySeal(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set a-2 mode=Founding", "add drift=(StatefulSet a: changed)")
	w.Repeated = []decide.Repeated{{Rule: "ApplyObjects", What: "preempted", Times: 5, Last: w.Now}}
	if d := decide.Decide(w.State); d.Rule != "Seal" {
		t.Errorf("with a forged status: %s", d)
	}
}
