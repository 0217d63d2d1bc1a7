package reconcile

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestReplace checks that the report keeps only the last entry of a cluster that was slow twice before its entries were
// taken.
func TestReplace(t *testing.T) {
	entry := func(name, message string) report.Cluster {
		return report.Cluster{Namespace: "ns", Name: name, Decision: decide.Decision{Message: message}}
	}
	rep := report.Report{Clusters: []report.Cluster{entry("a", "before"), entry("b", "before")}}
	replace(&rep, report.Report{Clusters: []report.Cluster{entry("a", "first"), entry("a", "last")}})
	if len(rep.Clusters) != 2 || rep.Clusters[0].Decision.Message != "last" || rep.Clusters[1].Decision.Message != "before" {
		t.Errorf("%+v", rep.Clusters)
	}
}
