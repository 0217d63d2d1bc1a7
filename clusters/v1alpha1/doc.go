// Package v1alpha1 is the API of Quorate: the EtcdCluster that git declares and whose status a pass reports.
//
// It imports only apimachinery, so that importers do not have to agree with Quorate on a version of client-go or
// k8s.io/api. For fields that correspond to core/v1 types (affinity, tolerations, …), the package declares its own
// types with the same JSON form.
//
// +kubebuilder:object:generate=true
// +groupName=etcd.quorate.dev
package v1alpha1
