package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// setDatabaseNearQuota sets a condition if a database is near its quota, and removes it once all databases are known to
// be smaller. The message does not contain the size, because the status is written whenever it changes.
func setDatabaseNearQuota(status *v1alpha1.EtcdClusterStatus, s decide.State) {
	const kind = v1alpha1.ConditionDatabaseNearQuota
	space, member := s.Space()
	switch {
	case space == decide.SpaceFree || len(status.Members) == 0:
		meta.RemoveStatusCondition(&status.Conditions, kind)
	case space != decide.SpaceUnknown:
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: string(space),
			Message: fmt.Sprintf("the database of %s uses at least %d percent of etcd.quota; at 100 percent, etcd "+
				"rejects writes", member, space.Percent()),
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(s.Now),
		})
	}
}

// spaceEvents returns a warning when a database gets near its quota, and when it is almost full.
func spaceEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	const kind = v1alpha1.ConditionDatabaseNearQuota
	before := meta.FindStatusCondition(custom.Status.Conditions, kind)
	after := meta.FindStatusCondition(status.Conditions, kind)
	almostFull := string(decide.SpaceAlmostFull)
	if after == nil || before != nil && (before.Reason == after.Reason || after.Reason != almostFull) {
		return nil
	}
	event.Warning, event.Reason, event.Note = true, kind, after.Message
	return []kube.Event{event}
}
