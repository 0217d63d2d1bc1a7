package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestFollowingShowsOnlyChanges checks that the passing of time does not count as a change, but a new wait or a newer
// backup does.
func TestFollowingShowsOnlyChanges(t *testing.T) {
	var following report.Following
	look := func(change func([]report.Cluster)) string {
		t.Helper()
		clusters := seenFleet()
		change(clusters)
		var b bytes.Buffer
		if err := following.Changes(&b, report.Report{Clusters: clusters}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var all bytes.Buffer
	if err := report.Table(&all, report.Report{Clusters: seenFleet()}, report.Style{}); err != nil {
		t.Fatal(err)
	}
	if got := look(func([]report.Cluster) {}); got != all.String() {
		t.Errorf("the first time:\n%s", got)
	}
	if got := look(func(list []report.Cluster) {
		for i := range list {
			list[i].State.Now = noon.Add(time.Minute)
		}
	}); got != "" {
		t.Errorf("the passing of time is shown:\n%s", got)
	}
	if got := look(func(list []report.Cluster) { list[0].Custom.Status.DeclaredRevision = "moved" }); !strings.HasPrefix(got, "prod/a ") {
		t.Errorf("a revision moves:\n%s", got)
	}
	if got := look(func(list []report.Cluster) {
		list[0].State.Backups.Last = &decide.Backup{Slot: noon}
		list[4].Decision.Rule = "Stopping"
	}); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "prod/a ") || !strings.Contains(got, "\nshop/old  ") {
		t.Errorf("two clusters change:\n%s", got)
	}
	var b bytes.Buffer
	some := report.Report{Unobserved: true, Clusters: seenFleet()[:1]}
	some.Clusters[0].State.Backups.Last = &decide.Backup{Slot: noon}
	if err := following.Changes(&b, some); err != nil || b.String() != "" {
		t.Errorf("some clusters are not observed: %v\n%s", err, b.String())
	}
	if err := following.Changes(&b, report.Report{}); err != nil || strings.Count(b.String(), "  gone\n") != 6 {
		t.Errorf("all clusters are gone: %v\n%s", err, b.String())
	}
	b.Reset()
	if err := new(report.Following).Changes(&b, report.Report{}); err != nil || b.String() != "no clusters\n" {
		t.Errorf("no clusters: %v %q", err, b.String())
	}
}
