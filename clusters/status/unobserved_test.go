package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestUnobserved checks that Ready becomes Unknown once if a cluster cannot be observed, and that the rest is kept as
// last observed until the cluster is observed again.
func TestUnobserved(t *testing.T) {
	live := liveCluster()
	live.Status = New(live, targets.Target{Cluster: *live}, healthyEntry(), reconcile.SourceStatus{Revision: "main@sha1:abc"})
	seen := live.Status.DeepCopy()
	later := noon.Add(time.Hour)
	next, isNews := Unobserved(live, "list Pods: forbidden\x1b[2J", later)
	ready := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady)
	if !isNews || ready.Status != metav1.ConditionUnknown || ready.Reason != "NotObserved" || !ready.LastTransitionTime.Time.Equal(later) {
		t.Fatalf("%t, %+v", isNews, ready)
	}
	if ready.Message == "list Pods: forbidden\x1b[2J" {
		t.Errorf("the message is not fit to be shown: %q", ready.Message)
	}
	for i := range next.Conditions {
		if was := seen.Conditions[i]; was.Type != v1alpha1.ConditionReady && was != next.Conditions[i] {
			t.Errorf("%+v was %+v", next.Conditions[i], was)
		}
	}
	if len(next.Members) != len(seen.Members) || next.SourceRevision != seen.SourceRevision || !live.Status.Conditions[0].LastTransitionTime.Equal(&seen.Conditions[0].LastTransitionTime) {
		t.Errorf("%+v was %+v", next, seen)
	}
	live.Status = next
	if _, isNews := Unobserved(live, "list Pods: forbidden, again", later); isNews {
		t.Error("it is reported again")
	}
	again := New(live, targets.Target{Cluster: *live}, healthyEntry(), reconcile.SourceStatus{})
	if !WorthWriting(live.Status, again) || !meta.IsStatusConditionTrue(again.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("observed again, %+v", again.Conditions)
	}
}
