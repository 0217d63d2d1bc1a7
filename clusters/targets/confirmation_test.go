package targets

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// heldRemoval returns the report of a run with one source whose only cluster has been removed from git, after text was
// written into the cluster's RemovalHeld condition.
func heldRemoval(branch, said string) string {
	owned := inventory.ByCluster{}
	custom := &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u",
		Labels: map[string]string{objects.LabelManagedBy: objects.ManagedBy}}}
	custom.Status.DeclaredSource = "https://host/fleet.git"
	if said != "" {
		meta.SetStatusCondition(&custom.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Message: said})
	}
	owned.At("shop", "a").Custom = custom
	desired := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "https://host/fleet.git", Label: "https://host/fleet.git",
		Revision: branch + "@sha1:0123456789012345678901234567890123456789"}}}
	desired.Summarize()
	_, removals := Of(desired, owned)
	var b strings.Builder
	_ = report.Text(&b, report.Report{Removals: removals}, report.Style{})
	return b.String()
}

// TestSuggestedConfirmationIsOneShellArgument checks that a shell passes the suggested flag as one argument, whatever
// the name of a branch or the text in a status.
func TestSuggestedConfirmationIsOneShellArgument(t *testing.T) {
	for name, text := range map[string]string{
		"a name of a branch":       heldRemoval("m$(echo${IFS}OWNED>&2)", ""), // git check-ref-format accepts it
		"a condition":              heldRemoval("main", "x;echo${IFS}OWNED>&2;: no longer declares it"),
		"a condition, with quotes": heldRemoval("main'`echo${IFS}OWNED>&2`'", ""),
	} {
		_, flag, found := strings.Cut(text, report.FlagConfirm)
		if !found {
			t.Fatalf("%s: no suggestion in %s", name, text)
		}
		flag, _, _ = strings.Cut(flag, "\n")
		out, _ := exec.Command("sh", "-c", "echo quorate run "+report.FlagConfirm+flag).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.TrimSpace(line) == "OWNED" {
				t.Errorf("%s: copying the suggestion\n  %s%s\ninto a shell runs a program of the attacker:\n%s", name, report.FlagConfirm, flag, out)
			}
		}
	}
}
