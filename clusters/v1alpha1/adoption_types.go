package v1alpha1

// AdoptionSpec specifies a running etcd cluster that the replicas join, so that they can take over from its members,
// the guests.
//
// +kubebuilder:validation:XValidation:rule="!has(self.abandon) || !self.abandon || !has(self.release) || self.release.size() == 0",message="abandon leaves the cluster to the guests; omit release"
// +kubebuilder:validation:XValidation:rule="self.endpoints.all(url, url.startsWith(has(self.caSecretName) ? 'https://' : 'http://'))",message="endpoints must begin with https:// if caSecretName is set, otherwise with http://; without the CA's private key, copy the cluster with spec.restore.from.etcd",fieldPath=".endpoints"
type AdoptionSpec struct {
	// clusterID is the cluster ID that the guests must report, in hexadecimal, as in the output of etcdctl endpoint
	// status --write-out=fields --hex.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="clusterID must be the ID of the cluster to adopt, in hexadecimal digits"
	ClusterID string `json:"clusterID"`
	// endpoints lists the client URL of every guest. The administrator configures which endpoints are allowed. By
	// default, no endpoints are allowed.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	Endpoints []EtcdEndpoint `json:"endpoints"`
	// caSecretName is the name of a Secret of type kubernetes.io/tls in the cluster's namespace. The Secret contains
	// the CA of the cluster to adopt: its certificate in tls.crt and its private key in tls.key. The new cluster takes
	// over this CA, so that guests, replicas and clients trust each other. caSecretName is required with TLS. While it
	// is set, the peer port accepts certificates from the CA with any common name. Once the last guest has left and
	// adopt is removed, the replicas restart one at a time and then accept only each other as peers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="caSecretName must be the name of a Secret"
	CASecretName string `json:"caSecretName,omitempty"`
	// release lists the member IDs of guests that may be removed from etcd, as printed by etcdctl member list. A guest
	// that responds is removed only once all replicas are healthy members. If unset, guests are not removed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=15
	Release []MemberID `json:"release,omitempty"`
	// abandon removes the replicas from the cluster again, so that only the guests remain. The volumes of the replicas
	// are deleted. It has no effect once the last guest has left.
	// +optional
	Abandon bool `json:"abandon,omitempty"`
}

// MemberID is the ID of an etcd member, in hexadecimal.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="a member ID must be in hexadecimal digits, as printed by etcdctl member list"
type MemberID string
