package status

import (
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/reconcile/decide"
)

// TestExpiryIsReported checks that the condition and the events report when certificates expire.
func TestExpiryIsReported(t *testing.T) {
	live, entry := liveCluster(), healthyEntry()
	tell := func() (status, reason string, warned bool) {
		before := live.DeepCopy()
		live.Status = newStatus(live, live, entry, fetchedMain)
		condition := conditionOf(t, live.Status, "CertificatesValid")
		if !strings.Contains(condition.Message, "tls.crt in Secret a-peer-tls") || !strings.Contains(condition.Message, "2027-") {
			t.Errorf("got %q", condition.Message)
		}
		events := expiryEvents(before, live.Status, kube.Event{})
		return string(condition.Status), condition.Reason, len(events) == 1 && events[0].Warning
	}
	end := noon.Add(300 * 24 * time.Hour)
	entry.State.Certificates = []decide.Certificate{
		{Secret: "a-ca", Key: "ca.crt", CA: true, NotBefore: noon, NotAfter: noon.Add(10 * 365 * 24 * time.Hour)},
		{Secret: "a-peer-tls", Key: "tls.crt", NotBefore: noon, NotAfter: end},
	}
	for _, test := range []struct {
		left           time.Duration
		status, reason string
		warned         bool
	}{
		{200 * 24 * time.Hour, "True", "Valid", false}, {99 * 24 * time.Hour, "True", "RenewalDue", true}, {98 * 24 * time.Hour, "True", "RenewalDue", false},
		{29 * 24 * time.Hour, "False", "AboutToExpire", true}, {-time.Hour, "False", "Expired", true},
	} {
		entry.State.Now = end.Add(-test.left)
		if status, reason, warned := tell(); status != test.status || reason != test.reason || warned != test.warned {
			t.Errorf("%s before the end: %s %s, warned: %t", test.left, status, reason, warned)
		}
	}
	entry.State.Certificates = nil
	if live.Status = newStatus(live, live, entry, fetchedMain); len(live.Status.Conditions) != 4 {
		t.Errorf("without certificates: %+v", live.Status.Conditions)
	}
}
