package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// notObserved is the reason of the Ready condition while a cluster cannot be observed.
const notObserved = "NotObserved"

// Unobserved returns the status of a cluster that could not be observed. Ready is Unknown, with why as its message, and
// the rest is as last observed. Only the first such status counts as news, because error messages may vary.
func Unobserved(
	live *v1alpha1.EtcdCluster, why string, now time.Time,
) (status v1alpha1.EtcdClusterStatus, isNews bool) {
	was := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionReady)
	if was != nil && was.Status == metav1.ConditionUnknown && was.Reason == notObserved {
		return live.Status, false
	}
	live.Status.DeepCopyInto(&status)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: notObserved, Message: why,
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
	makeReadable(&status)
	return status, true
}
