package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Affinity has the shape of core/v1 Affinity.
type Affinity struct {
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`
	// +optional
	PodAntiAffinity *PodAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity has the shape of core/v1 NodeAffinity.
type NodeAffinity struct {
	// +optional
	Required *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// +optional
	// +listType=atomic
	Preferred []PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector has the shape of core/v1 NodeSelector.
type NodeSelector struct {
	// +required
	// +listType=atomic
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm has the shape of core/v1 NodeSelectorTerm.
type NodeSelectorTerm struct {
	// +optional
	// +listType=atomic
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty"`
	// +optional
	// +listType=atomic
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty"`
}

// NodeSelectorRequirement has the shape of core/v1 NodeSelectorRequirement.
type NodeSelectorRequirement struct {
	// +required
	Key string `json:"key"`
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	Operator string `json:"operator"`
	// +optional
	// +listType=atomic
	Values []string `json:"values,omitempty"`
}

// PreferredSchedulingTerm has the shape of core/v1 PreferredSchedulingTerm.
type PreferredSchedulingTerm struct {
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// +required
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAffinity has the shape of core/v1 PodAffinity and PodAntiAffinity.
type PodAffinity struct {
	// +optional
	// +listType=atomic
	Required []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// +optional
	// +listType=atomic
	Preferred []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PodAffinityTerm has the shape of core/v1 PodAffinityTerm.
type PodAffinityTerm struct {
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// +required
	// +kubebuilder:validation:MinLength=1
	TopologyKey string `json:"topologyKey"`
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// +optional
	// +listType=atomic
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
	// +optional
	// +listType=atomic
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty"`
}

// WeightedPodAffinityTerm has the shape of core/v1 WeightedPodAffinityTerm.
type WeightedPodAffinityTerm struct {
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
	// +required
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}
