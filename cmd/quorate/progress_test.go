package main

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestProgressShowsCurrentStep checks that the progress output shows the current step of a cluster's forecast and the
// total number of steps.
func TestProgressShowsCurrentStep(t *testing.T) {
	w, _ := simulate.Settled("a", decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"})
	w.Declared.Replicas = 4
	said := progressOf(w)
	want := []string{"Act ApplyObjects (1 of 6)", "Act ScaleUp (2 of 6)", "Act ApplyObjects (3 of 6)", "Wait WaitForMembers (3 of 6)",
		"Act Seal (4 of 6)", "Act PromoteLearner (5 of 6)", "Act ApplyObjects (6 of 6)", "Done Converged "}
	if !slices.Equal(said, want) {
		t.Errorf("got %q", said)
	}
}

// TestProgressIsMonotonic checks that the total does not jump while the forecast ends at a restored member that has not
// started.
func TestProgressIsMonotonic(t *testing.T) {
	d := decide.Declared{Replicas: 1, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}
	d.Restore = decide.RestoreSource{From: "tuesday of b/a", Digest: "tuesday of b/a"}
	said := progressOf(simulate.New("a", d, 0))
	want := []string{"Act Bootstrap (1 of 6)", "Act Restore (2 of 6)", "Act Restore (3 of 6)", "Act ApplyObjects (4 of 6)",
		"Wait MembershipUnknown (4 of 6)", "Act Seal (5 of 6)", "Act ApplyObjects (6 of 6)", "Done Converged "}
	if !slices.Equal(said, want) {
		t.Errorf("got %q", said)
	}
}

// progressOf returns the progress output for a cluster's passes until it is up to date.
func progressOf(w *simulate.World) []string {
	var out bytes.Buffer
	tell := progressTo(&out, report.Style{})
	pass := func() decide.Verdict {
		c := report.Cluster{Namespace: "n", Name: "a", State: w.Observe()}
		c.Decision, _ = w.Pass(simulate.NoCrash)
		if c.Decision.Verdict == decide.Act {
			c.Outcome = &report.Outcome{Changed: true}
		}
		tell(report.Report{Clusters: []report.Cluster{c}}, 0)
		w.Tick()
		return c.Decision.Verdict
	}
	for range 50 {
		if pass() == decide.Done {
			break
		}
	}
	var said []string
	for _, match := range regexp.MustCompile(`(?m)  (Act|Wait|Done) +(\w+)  (\(\d+ of \d+\))?`).FindAllStringSubmatch(out.String(), -1) {
		said = append(said, match[1]+" "+match[2]+" "+match[3])
	}
	return said
}
