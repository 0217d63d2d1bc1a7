package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// setCertificatesValid reports how long the certificates are valid. If a pass renews certificates, their new validity
// is reported by the next pass.
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

// expiryEvents returns a warning whenever the state of the certificates worsens or different certificates are affected.
func expiryEvents(custom *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus, event kube.Event) []kube.Event {
	condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCertificatesValid)
	if condition == nil || condition.Reason == string(decide.Valid) ||
		!changed(custom, status, v1alpha1.ConditionCertificatesValid) {
		return nil
	}
	event.Warning, event.Reason, event.Note = true, condition.Reason, condition.Message
	return []kube.Event{event}
}
