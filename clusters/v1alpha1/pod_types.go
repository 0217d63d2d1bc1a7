package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodSpec configures the members' pods. The fields have the same meaning as in core/v1.
type PodSpec struct {
	// resources specifies the resource requests and limits of the etcd container. If unset, requests are 50m of CPU and
	// 128Mi of memory. A CPU request keeps etcd from being evicted first. A CPU limit slows etcd's heartbeats.
	// +optional
	// +kubebuilder:default={requests: {cpu: "50m", memory: "128Mi"}}
	Resources ResourceRequirements `json:"resources,omitzero"`
	// affinity is the affinity of the pods.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints lists the topology spread constraints of the pods. By default, members are spread over
	// zones and nodes as far as possible.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// tolerations lists the tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// nodeSelector is the node selector of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="a nodeSelector value must be a label value of at most 63 characters"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// priorityClassName is the PriorityClass of the pods.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// labels are added to the pods, in addition to Quorate's own labels.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('app.kubernetes.io/') && !k.startsWith('etcd.quorate.dev/'))",message="labels under app.kubernetes.io/ and etcd.quorate.dev/ are reserved for Quorate"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('statefulset.kubernetes.io/') && !k.startsWith('apps.kubernetes.io/') && k != 'controller-revision-hash')",message="labels under statefulset.kubernetes.io/ and apps.kubernetes.io/, and the label controller-revision-hash, are reserved for Kubernetes"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="a label key must be NAME or DOMAIN/NAME, with a NAME of at most 63 characters"
	Labels map[string]PodLabelValue `json:"labels,omitempty"`
	// annotations are added to the pods, in addition to Quorate's own annotations.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.quorate.dev/'))",message="annotations under etcd.quorate.dev/ are reserved for Quorate"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="an annotation key must be NAME or DOMAIN/NAME, with a NAME of at most 63 characters"
	Annotations map[string]PodAnnotationValue `json:"annotations,omitempty"`
}

// PodLabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type PodLabelValue string

// PodAnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type PodAnnotationValue string

// ResourceRequirements has the shape of core/v1 ResourceRequirements without claims.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('cpu' in self.requests) || !('cpu' in self.limits) || string(self.requests['cpu']).size() > 36 || string(self.requests['cpu']).matches('[eE].{4}') || string(self.limits['cpu']).size() > 36 || string(self.limits['cpu']).matches('[eE].{4}') || !isQuantity(string(self.requests['cpu'])) || !isQuantity(string(self.limits['cpu'])) || quantity(string(self.requests['cpu'])).compareTo(quantity(string(self.limits['cpu']))) <= 0",message="a request may not exceed the limit of the same resource: cpu",fieldPath=".requests"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('memory' in self.requests) || !('memory' in self.limits) || string(self.requests['memory']).size() > 36 || string(self.requests['memory']).matches('[eE].{4}') || string(self.limits['memory']).size() > 36 || string(self.limits['memory']).matches('[eE].{4}') || !isQuantity(string(self.requests['memory'])) || !isQuantity(string(self.limits['memory'])) || quantity(string(self.requests['memory'])).compareTo(quantity(string(self.limits['memory']))) <= 0",message="a request may not exceed the limit of the same resource: memory",fieldPath=".requests"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || !('ephemeral-storage' in self.requests) || !('ephemeral-storage' in self.limits) || string(self.requests['ephemeral-storage']).size() > 36 || string(self.requests['ephemeral-storage']).matches('[eE].{4}') || string(self.limits['ephemeral-storage']).size() > 36 || string(self.limits['ephemeral-storage']).matches('[eE].{4}') || !isQuantity(string(self.requests['ephemeral-storage'])) || !isQuantity(string(self.limits['ephemeral-storage'])) || quantity(string(self.requests['ephemeral-storage'])).compareTo(quantity(string(self.limits['ephemeral-storage']))) <= 0",message="a request may not exceed the limit of the same resource: ephemeral-storage",fieldPath=".requests"
type ResourceRequirements struct {
	// limits are the resource limits, by resource name.
	// +optional
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-') || k.contains('/'))",message="a resource must be cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).size() <= 36 && !string(self[k]).matches('[eE].{4}'))",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).matches('^-[0.]*[1-9]'))",message="a limit cannot be negative"
	// +kubebuilder:validation:XValidation:rule="!('memory' in self) || string(self['memory']).size() > 36 || string(self['memory']).matches('[eE].{4}') || !isQuantity(string(self['memory'])) || quantity(string(self['memory'])).compareTo(quantity('32Mi')) >= 0",message="etcd cannot run in less than 32Mi of memory; is a unit missing, as in 512Mi?"
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	// requests are the resource requests, by resource name.
	// +optional
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-') || k.contains('/'))",message="a resource must be cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).size() <= 36 && !string(self[k]).matches('[eE].{4}'))",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).matches('^-[0.]*[1-9]'))",message="a request cannot be negative"
	Requests map[string]resource.Quantity `json:"requests,omitempty"`
}

// Toleration has the shape of core/v1 Toleration.
type Toleration struct {
	// +optional
	Key string `json:"key,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=Exists;Equal
	Operator string `json:"operator,omitempty"`
	// +optional
	Value string `json:"value,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect,omitempty"`
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TopologySpreadConstraint has the shape of core/v1 TopologySpreadConstraint.
type TopologySpreadConstraint struct {
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxSkew int32 `json:"maxSkew"`
	// +required
	// +kubebuilder:validation:MinLength=1
	TopologyKey string `json:"topologyKey"`
	// +required
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable string `json:"whenUnsatisfiable"`
	// labelSelector selects the pods to spread. Defaults to the cluster's own pods.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinDomains *int32 `json:"minDomains,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeAffinityPolicy *string `json:"nodeAffinityPolicy,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeTaintsPolicy *string `json:"nodeTaintsPolicy,omitempty"`
	// +optional
	// +listType=atomic
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`
}
