package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// DefragmentationRequest returns the newest request to defragment all members, as recorded in the status.
func DefragmentationRequest(custom *v1alpha1.EtcdCluster) decide.DefragmentationRequest {
	r := custom.Status.Defragmentation
	if r == nil {
		return decide.DefragmentationRequest{}
	}
	return decide.DefragmentationRequest{Request: r.Request, Since: r.Since.UTC(), Completed: r.Completed}
}

// RecallDefragmentation sets the last defragmentation of each member from the status. custom is nil if the custom
// resource does not exist.
func RecallDefragmentation(custom *v1alpha1.EtcdCluster, members []decide.Member) {
	if custom == nil {
		return
	}
	for i := range members {
		for _, before := range custom.Status.Members {
			if m := &members[i]; before.ID == m.ID.String() && !before.DefragmentedAt.IsZero() {
				m.Defragmented = decide.LastDefragmentation{At: before.DefragmentedAt.UTC(),
					Failure: before.DefragmentationFailure}
			}
		}
	}
}

// setDefragmentation reports the request to defragment all members, and the member that the pass has defragmented or
// tried to defragment.
func setDefragmentation(status *v1alpha1.EtcdClusterStatus, entry report.Cluster) {
	var tried decide.ID
	if a, is := entry.Decision.Action.(decide.Defragment); is && entry.Outcome != nil && entry.Outcome.Changed {
		tried = a.ID
	}
	if r := entry.State.RequestToReport(tried); r.Request != "" {
		status.Defragmentation = &v1alpha1.DefragmentationStatus{Request: r.Request, Since: metav1.NewTime(r.Since),
			Completed: r.Completed}
	}
	for i := range status.Members {
		if m := &status.Members[i]; tried != 0 && m.ID == tried.String() {
			m.DefragmentedAt, m.DefragmentationFailure = metav1.NewTime(entry.State.Now), entry.Outcome.Failure
		}
	}
}
