package v1alpha1

// NetworkPolicySpec lists the peers that may connect to the members, in addition to other members and Quorate's own
// pods.
type NetworkPolicySpec struct {
	// clients lists the peers that may connect to the client port, 2379.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Clients []NetworkPeer `json:"clients,omitempty"`
	// metrics lists the peers that may connect to the metrics port, 2381, in addition to the kubelet of a member's
	// node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Metrics []NetworkPeer `json:"metrics,omitempty"`
}

// NetworkPeer selects peers: pods by their labels, or addresses.
//
// +kubebuilder:validation:XValidation:rule="has(self.cidr) != (has(self.pods) || has(self.namespaces))",message="set pods, namespaces or both, or only cidr; an empty entry is ambiguous"
type NetworkPeer struct {
	// pods selects pods that have all of these labels, in the namespaces that namespaces selects. Without namespaces,
	// it selects pods in the cluster's namespace.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a label key must be NAME or DOMAIN/NAME, with a NAME of at most 63 characters"
	Pods map[string]PodLabelValue `json:"pods,omitempty"`
	// namespaces selects namespaces that have all of these labels, such as kubernetes.io/metadata.name. Without pods,
	// it selects all pods in these namespaces.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a label key must be NAME or DOMAIN/NAME, with a NAME of at most 63 characters"
	Namespaces map[string]PodLabelValue `json:"namespaces,omitempty"`
	// cidr selects a range of addresses outside the Kubernetes cluster, such as 192.0.2.0/24.
	// +optional
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.matches('^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])/(3[0-2]|[12]?[0-9])$') || self.matches('^(([0-9a-f]{1,4}:){1,7}:|([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|([0-9a-f]{1,4}:){1,6}:[0-9a-f]{1,4}|::)/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$')",message="an address range must be ADDRESS/BITS, such as 192.0.2.0/24 or 2001:db8::/64"
	CIDR string `json:"cidr,omitempty"`
}
