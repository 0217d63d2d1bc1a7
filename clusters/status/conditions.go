package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// setConditions reports the decision in the standard conditions Ready, Reconciling and Stalled. Reconciling and Stalled
// are false in a healthy state.
func setConditions(
	status *v1alpha1.EtcdClusterStatus, entry report.Cluster, source reconcile.SourceStatus, now metav1.Time,
) {
	d := entry.Decision
	message := d.Message
	if entry.Error != "" {
		message = entry.Error + " (" + message + ")"
	}
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: status.ObservedGeneration,
			LastTransitionTime: now,
		})
	}
	set(v1alpha1.ConditionReady, ready(status, entry), d.Rule, message)
	set(v1alpha1.ConditionReconciling, truth(d.Verdict == decide.Act || d.Verdict == decide.Wait), d.Rule, message)
	set(v1alpha1.ConditionStalled, truth(d.Verdict == decide.Block), d.Rule, message)
	switch {
	case source.Error != "":
		set(v1alpha1.ConditionSourceReady, metav1.ConditionFalse, "FetchFailed", source.Error)
	case source.Revision != "": // otherwise unchanged, because the state of this cluster's source is unknown
		set(v1alpha1.ConditionSourceReady, metav1.ConditionTrue, "Fetched", source.Revision)
	}
	setCertificatesValid(status, entry, now)
	if orphaned := entry.State.Declared.Orphaned; orphaned != "" {
		set(v1alpha1.ConditionOrphaned, metav1.ConditionTrue, "Orphaned", orphaned)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOrphaned)
	}
}

// ready returns whether every declared member is a healthy voter, and the cluster is supposed to serve clients and is
// not blocked.
func ready(status *v1alpha1.EtcdClusterStatus, entry report.Cluster) metav1.ConditionStatus {
	is, known := entry.Ready(int(status.ReadyReplicas), len(status.Endpoints) > 0)
	if !known {
		return metav1.ConditionUnknown
	}
	return truth(is)
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// setRemovalHeld adds what a pass knows about the declaration to a status. It does not change anything that is unknown.
func setRemovalHeld(
	status *v1alpha1.EtcdClusterStatus, t targets.Target, old v1alpha1.EtcdClusterStatus, now metav1.Time,
) {
	if t.Held == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRemovalHeld)
	} else {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: "NotConfirmed", Message: t.Held,
			ObservedGeneration: status.ObservedGeneration, LastTransitionTime: now,
		})
	}
	if t.Held != "" || t.Elsewhere {
		stayDeclared(status, old)
	}
	if !t.Elsewhere {
		return
	}
	status.SourceRevision = old.SourceRevision
	before := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionSourceReady)
	if before == nil {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionSourceReady)
		return
	}
	*meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSourceReady) = *before
}
