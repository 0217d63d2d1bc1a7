package status

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestDatabaseNearQuota checks that a database is reported once at 80 percent of its quota and once at 95 percent. The
// condition is removed once the database is smaller, and is kept while its size is unknown.
func TestDatabaseNearQuota(t *testing.T) {
	custom := &v1alpha1.EtcdCluster{}
	for _, step := range []struct {
		size   int64
		reason string
		event  bool
	}{{799, "", false}, {800, "NearQuota", true}, {900, "NearQuota", false}, {950, "AlmostFull", true}, {0, "AlmostFull", false},
		{2000, "AlmostFull", false}, {850, "NearQuota", false}, {100, "", false}} {
		s := decide.State{Name: "a", Now: time.Unix(1, 0), Declared: decide.Declared{Quota: 1000},
			Membership: decide.Membership{Members: []decide.Member{{ID: 1, Name: "a-0", DBSize: step.size}}}}
		next := *custom.Status.DeepCopy()
		next.Members = []v1alpha1.MemberStatus{{Name: "a-0"}}
		setDatabaseNearQuota(&next, s)
		reason := ""
		if c := meta.FindStatusCondition(next.Conditions, "DatabaseNearQuota"); c != nil {
			reason = c.Reason
		}
		events := spaceEvents(custom, next, kube.Event{})
		warned := slices.ContainsFunc(events, func(e kube.Event) bool { return e.Warning && e.Reason == "DatabaseNearQuota" })
		if reason != step.reason || warned != step.event || len(events) > 1 {
			t.Errorf("%d: %q, want %q, events %+v", step.size, reason, step.reason, events)
		}
		custom.Status = next
	}
}
