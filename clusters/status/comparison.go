package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Comparison returns the most recent comparison of the voters' data, as recorded in the status. A difference that is
// dated in the future counts as found now, so that backups can be newer.
func Comparison(custom *v1alpha1.EtcdCluster, now time.Time) decide.Comparison {
	recorded := custom.Status.CorruptionCheck
	if recorded == nil {
		return decide.Comparison{}
	}
	c := decide.Comparison{Revision: recorded.Revision, Failure: shortened(recorded.Failure)}
	if at := recorded.At; at != nil && !at.IsZero() {
		c.At = at.UTC()
	}
	if since := recorded.DiffersSince; since != nil && !since.IsZero() {
		c.DiffersSince = since.UTC()
		if c.DiffersSince.After(now) {
			c.DiffersSince = now
		}
	}
	return c
}

// corruptionCheck returns the comparison for the status, or nil if the data was never compared.
func corruptionCheck(s decide.State) *v1alpha1.CorruptionCheckStatus {
	c := s.ComparisonToReport()
	if c == (decide.Comparison{}) {
		return nil
	}
	status := &v1alpha1.CorruptionCheckStatus{Revision: c.Revision, Failure: shortened(printable.Line(c.Failure))}
	if !c.At.IsZero() {
		status.At = &metav1.Time{Time: c.At}
	}
	if !c.DiffersSince.IsZero() {
		status.DiffersSince = &metav1.Time{Time: c.DiffersSince}
	}
	return status
}
