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
	want := []string{"Act ApplyObjects (1 of 5)", "Act ScaleUp (2 of 5)", "Act ApplyObjects (3 of 5)", "Wait WaitForMembers (3 of 5)",
		"Act Seal (4 of 5)", "Act PromoteLearner (5 of 5)", "Done Converged "}
	if !slices.Equal(said, want) {
		t.Errorf("got %q\n%s", said, out.String())
	}
}
