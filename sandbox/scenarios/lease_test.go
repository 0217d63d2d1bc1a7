package scenarios

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// leaseHolder is who holds a lease in the namespace; empty if nobody does.
func (w *world) leaseHolder() string {
	w.t.Helper()
	leases, err := w.kube.CoordinationV1().Leases(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, lease := range leases.Items {
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			return *holder
		}
	}
	return ""
}
