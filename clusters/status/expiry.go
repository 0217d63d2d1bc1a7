package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// setCertificatesValid tells until when the certificates are good. A pass that has reissued some
// leaves it to the next one.
func setCertificatesValid(status *v1alpha1.EtcdClusterStatus, entry report.Cluster, now metav1.Time) {
	validity := entry.State.CertificatesValidity()
	switch {
	case validity == "":
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionCertificatesValid)
		return
	case entry.Renews():
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionCertificatesValid, Status: truth(!entry.State.CertificatesUrgent()),
		Reason:  string(validity),
		Message: entry.State.DescribeCertificates(), ObservedGeneration: status.ObservedGeneration,
		LastTransitionTime: now,
	})
}

// expiryEvents are warnings, each time that the certificates become worse or others do.
func expiryEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCertificatesValid)
	if condition == nil || condition.Reason == string(decide.Valid) ||
		!changed(custom, status, v1alpha1.ConditionCertificatesValid) {
		return nil
	}
	event.Warning, event.Reason, event.Note = true, condition.Reason, condition.Message
	return []kube.Event{event}
}
