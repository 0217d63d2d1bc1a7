package simulate_test

import (
	"fmt"
	"slices"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestForecastShowsDeletionOfOldVolumes checks that the forecast in each step of a recovery with oldVolumes: Delete shows
// that data is deleted, also if the ID of the new cluster is not the ID that a simulated Job would create.
func TestForecastShowsDeletionOfOldVolumes(t *testing.T) {
	w := formedWith(t, 3)
	w.lose(w.order(1, 0b101, "w"))
	for n := range 40 {
		t.Run(fmt.Sprintf("after %d passes", n), func(t *testing.T) {
			deletes := w.Clone()
			deletes.Declared.Recovery.OldVolumes = decide.Delete
			showsDeletion(t, deletes.Observe())
			showsDeletion(t, withNewClusterID(deletes.Observe(), 0xcafe))
		})
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
}

func showsDeletion(t *testing.T, s decide.State) {
	t.Helper()
	ahead := forecast.Of(s)
	if ahead.Open || ahead.End.Verdict != decide.Done || !slices.Contains(ahead.Risks(), forecast.DeletesData) {
		t.Errorf("open: %t, end: %s\n%s\n%s", ahead.Open, ahead.End, decide.Decide(s), ahead.Text(""))
	}
}

// withNewClusterID replaces the ID of the cluster that the recovery Job has created.
func withNewClusterID(s decide.State, id decide.ID) decide.State {
	if s.Recovery.Job == nil || s.Recovery.Job.Into == 0 {
		return s
	}
	job := *s.Recovery.Job
	ids := []*decide.ID{&job.Into, &s.Membership.ClusterID, &s.Record.ClusterID, &s.ReportedClusterID}
	for i := range s.Replicas {
		ids = append(ids, &s.Replicas[i].ClusterID, &s.Replicas[i].LastUse.ClusterID)
	}
	was := job.Into
	for _, at := range ids {
		if *at == was {
			*at = id
		}
	}
	s.Recovery.Job = &job
	return s
}
