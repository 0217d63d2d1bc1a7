package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Comparison returns the most recent comparison of the voters' data, as recorded in the status. A difference that is
// dated in the future is treated as found now, because otherwise no backup could be newer.
func Comparison(custom *v1alpha1.EtcdCluster, now time.Time) decide.Comparison {
	recorded := custom.Status.CorruptionCheck
	if recorded == nil {
		return decide.Comparison{}
	}
	c := decide.Comparison{Revision: recorded.Revision, Failure: shortened(recorded.Failure)}
	c.At, c.DiffersSince = timeOf(recorded.At), timeOf(recorded.DiffersSince)
	if c.DiffersSince.After(now) {
		c.DiffersSince = now
	}
	return c
}

// timeOf returns the time in UTC. A missing time, or a time that JSON cannot represent in UTC, is zero.
func timeOf(t *metav1.Time) time.Time {
	if t == nil || t.UTC().Year() < 1970 || t.UTC().Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

// corruptionCheck returns the comparison for the status, or nil if the data was never compared or is gone.
func corruptionCheck(s decide.State) *v1alpha1.CorruptionCheckStatus {
	c := s.ComparisonToReport()
	if c == (decide.Comparison{}) || isGone(s) {
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
