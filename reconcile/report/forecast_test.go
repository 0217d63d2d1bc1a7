package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// planned returns the plan for a cluster of three members whose declared size has changed.
func planned(replicas int) report.Report {
	w := simulate.New("a", decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h"}, 0)
	w.Converge(20)
	w.Declared.Replicas = replicas
	entry := report.Cluster{Namespace: "n", Name: "a", State: w.Observe()}
	entry.Decision = decide.Decide(entry.State)
	if ahead := forecast.Of(entry.State); len(ahead.Steps) > 0 {
		entry.Road = &ahead
	}
	return report.Report{Planned: true, Clusters: []report.Cluster{entry}}
}

func TestTextShowsForecast(t *testing.T) {
	var b strings.Builder
	if err := report.Text(&b, planned(2), report.Style{}); err != nil {
		t.Fatal(err)
	}
	want := `    road: 5 actions, then done; loses tolerance, deletes data
      1  ApplyObjects      3 of 3 voters, 1 may fail
      2  RemoveMember a-2  2 of 2 voters, none may fail
      3  ApplyObjects      2 of 2 voters, none may fail
      4  DeleteVolume a-2  2 of 2 voters, none may fail; stops a-2; deletes the volume of a-2
      5  ApplyObjects      2 of 2 voters, none may fail
roads assume that pods start, images can be pulled, backups and restores succeed, and nothing else changes the cluster
plan sha256:DIGEST
1 cluster, 1 to act on, at worst deletes data
`
	if got := b.String(); !strings.HasSuffix(got, strings.Replace(want, "sha256:DIGEST", planned(2).Digest(), 1)) {
		t.Errorf("got\n%s", got)
	}
	if said := report.Summary(planned(3)); said != "1 cluster, 1 done" {
		t.Errorf("with nothing to do, got %q", said)
	}
}

func TestJSONShowsForecast(t *testing.T) {
	var b strings.Builder
	if err := report.JSON(&b, planned(2)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Clusters []struct {
			Road struct {
				Risks []string
				Start struct{ Voters, Answering int }
				Steps []struct {
					Kind, What     string
					Lowest         struct{ Voters, Answering int }
					DeletesVolumes []string
				}
				End struct{ Verdict string }
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	r := got.Clusters[0].Road
	if !slices.Equal(r.Risks, []string{"loses-tolerance", "deletes-data"}) || r.Start.Answering != 3 || r.End.Verdict != "Done" {
		t.Errorf("the road is %+v", r)
	}
	if step := r.Steps[3]; step.Kind != "DeleteVolume" || step.What != "DeleteVolume a-2" || step.Lowest.Voters != 2 ||
		!slices.Equal(step.DeletesVolumes, []string{"a-2"}) {
		t.Errorf("step 4 is %+v", step)
	}
}
