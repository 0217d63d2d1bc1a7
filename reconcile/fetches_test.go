package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// TestReportListsFetchedSources checks that the report of each pass contains the result of every source read so far.
func TestReportListsFetchedSources(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	then := func() time.Time { return at }
	s := &source{desired: reconcile.Desired{Sources: []reconcile.SourceState{
		{Name: "/one", Label: "one", Revision: "main@sha1:1", At: then},
		{Name: "two", Unread: errors.New("no"), At: then},
	}}}
	rep := reconciler(s, &live{}).Pass(t.Context())
	want := []report.Fetch{{Source: "one", Revision: "main@sha1:1", At: at}, {Source: "two", At: at, Failed: true}}
	if !slices.Equal(rep.Fetches, want) {
		t.Errorf("got %+v", rep.Fetches)
	}
}

// TestReportNamesAllClusters checks that the report of a pass names all clusters, even if the pass covers only some.
func TestReportNamesAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := slowClusters("ns/a", "ns/waits")
		reconciler(&source{}, l).UntilConverged(t.Context())
		waits := l.clusters["ns/waits"].world
		waits.LockHolder, waits.Declared.SpecHash = "process 7 on elsewhere", "h2"
		r, partial := reconciler(&source{}, l), 0
		r.Progress = func(rep report.Report, _ time.Duration) {
			known := rep.Others
			for _, c := range rep.Clusters {
				known = append(known, c.Key())
			}
			if slices.Sort(known); !slices.Equal(known, []string{"ns/a", "ns/waits"}) {
				t.Errorf("it contains %q", known)
			}
			if len(rep.Others) > 0 {
				partial++
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		r.UntilConverged(ctx)
		if partial == 0 {
			t.Error("each pass was about both")
		}
		l.end(t)
	})
}
