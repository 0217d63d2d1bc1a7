package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// waiting returns what this pass is waiting for, including waits that earlier passes recorded in the current status.
func waiting(live *v1alpha1.EtcdCluster, entry report.Cluster) []v1alpha1.WaitStatus {
	s := entry.State
	s.Waited = Waited(live, s.Now)
	changed := entry.Outcome != nil && entry.Outcome.Changed
	var list []v1alpha1.WaitStatus
	for _, w := range decide.Waits(s, entry.Decision, changed) {
		list = append(list, v1alpha1.WaitStatus{Rule: w.Rule, For: w.For, Since: metav1.NewTime(w.Since),
			Seen: metav1.NewTime(w.Seen)})
	}
	return list
}
