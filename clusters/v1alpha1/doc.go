// Package v1alpha1 is the API of Quorate: the EtcdCluster that git declares and whose status a pass reports.
//
// It imports only apimachinery, so that importers do not have to agree with Quorate on a version of client-go or
// k8s.io/api. If a field has the shape of a core/v1 type (affinity, tolerations, …), this package declares that shape
// itself; the JSON is the same.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.quorate.dev
package v1alpha1
