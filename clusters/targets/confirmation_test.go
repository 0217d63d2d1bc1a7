package targets

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// heldRemoval returns the report of a run with one source whose only cluster has been removed from git. If said is not
// empty, it is the message of the cluster's RemovalHeld condition.
func heldRemoval(branch, said string) string {
	owned := inventory.ByCluster{}
	declaredBy(owned, "https://host/fleet.git", "shop/a")
	if said != "" {
		heldBefore(owned, "shop/a", said)
	}
	desired := reconcile.Desired{Sources: []reconcile.SourceState{{Name: "https://host/fleet.git", Label: "https://host/fleet.git",
		Revision: branch + "@sha1:0123456789012345678901234567890123456789"}}}
	desired.Summarize()
	_, removals := Of(desired, owned)
	var b strings.Builder
	_ = report.Text(&b, report.Report{Removals: removals}, report.Style{})
	return b.String()
}

// TestSuggestedConfirmationIsOneShellArgument checks that a shell passes the suggested flag as one argument, whatever
// the branch is called and whatever text the status contains.
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

// TestOnlyDeclarationConfirmsMembers checks that members are confirmed by the annotation of a declaration that was
// read, but not by the annotation of the custom resource, because only git may confirm members.
func TestOnlyDeclarationConfirmsMembers(t *testing.T) {
	read := declare("shop/a", "3.6.16")
	read.Cluster.Annotations = map[string]string{v1alpha1.AnnotationConfirmMembers: " a0/1 "}
	for what, c := range map[string]struct {
		desired reconcile.Desired
		want    string
	}{
		"the source cannot be read": {reconcile.Desired{Unread: errors.New("timed out")}, ""},
		"the manifest is invalid":   {reconcile.Desired{Problems: []report.Problem{{Cluster: "shop/a", Message: "spec.versoin: unknown"}}}, ""},
		"the source is read":        {reconcile.Desired{Clusters: []reconcile.Declaration{read}}, "a0/1"},
	} {
		owned := inventory.ByCluster{}
		declaredBy(owned, "s", "shop/a")
		owned.At("shop", "a").Custom.Annotations = map[string]string{v1alpha1.AnnotationConfirmMembers: "a0/2"}
		found, _ := Of(c.desired, owned)
		if len(found) != 1 || found[0].Declared().ConfirmedMembers != c.want {
			t.Errorf("%s: %+v", what, found)
		}
	}
}
