package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/steps"
)

// counts returns how many times each phase was observed.
func counts(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		if f.GetName() == "quorate_phase_duration_seconds" {
			for _, s := range f.GetMetric() {
				lines = append(lines, fmt.Sprintf("%s %d", s.GetLabel()[0].GetValue(), s.GetHistogram().GetSampleCount()))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestPhasesAreCounted checks that each phase is counted once, and that unknown phases are ignored.
func TestPhasesAreCounted(t *testing.T) {
	m := metrics.New()
	for _, phase := range append(steps.Phases(), "observe", "unknown") {
		m.Phase(phase, time.Second)
	}
	requireSame(t, counts(t, m), "act 1\ndecide 1\nfetch 1\nlist 1\nobserve 2\nreport 1")
	requireSame(t, gathered(t, m, "lease"), "lease_conflicts_total 0")
	m.LeaseConflict()
	requireSame(t, gathered(t, m, "lease"), "lease_conflicts_total 1")
}

func TestRequestsAreCountedByStatusClass(t *testing.T) {
	m := metrics.New()
	var all sync.WaitGroup
	for _, status := range []int{200, 201, 404, 409, 500, 101, 302, 0, -1, 99, 600, 1 << 40} {
		all.Go(func() { m.Request("list", status) })
	}
	all.Wait()
	requireSame(t, gathered(t, m, "api"), `
	api_requests_total 1xx list 1
	api_requests_total 2xx list 2
	api_requests_total 3xx list 1
	api_requests_total 4xx list 2
	api_requests_total 5xx list 1
	api_requests_total none list 5`)
}

// TestRevisionAgeMetric checks that the commit time of the last revision is exported if it is known.
func TestRevisionAgeMetric(t *testing.T) {
	m := metrics.New()
	rep := pass(full("a"))
	rep.Fetches[0].Committed = noon.Add(-time.Hour)
	m.Observe(rep, time.Second)
	const want = "source_commit_timestamp_seconds https://git.example.com/fleet.git 1793530800"
	requireSame(t, gathered(t, m, "source_commit"), want)
	rep.Fetches[0].Failed, rep.Fetches[0].Committed = true, time.Time{}
	m.Observe(rep, time.Second) // a failed read does not change the last revision
	requireSame(t, gathered(t, m, "source_commit"), want)
	rep.Fetches[0].Failed = false
	m.Observe(rep, time.Second)
	requireSame(t, gathered(t, m, "source_commit"), "")
}
