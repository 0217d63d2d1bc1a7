package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCluster declares one etcd cluster.
//
// +kubebuilder:metadata:annotations="argocd.argoproj.io/sync-options=Prune=false,Delete=false"
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/prune=disabled"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=etcdclusters,shortName=etcd,scope=Namespaced,categories=all
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Voters",type=string,JSONPath=`.status.voters`,description="healthy voters of declared replicas"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Rule",type=string,JSONPath=`.status.rule`,description="the rule that spoke last"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.declaredRevision`,description="the git revision acted on"
// +kubebuilder:printcolumn:name="Cluster-ID",type=string,priority=1,JSONPath=`.status.clusterID`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 48",message="metadata.name may have at most 48 characters, because names derived from it are limited to 63"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.backup) || self.metadata.name.size() <= 45",message="metadata.name may have at most 45 characters if spec.backup is set, because Kubernetes limits the length of CronJob names"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that starts with a letter: Services are named after it"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the cluster.
	// +required
	Spec EtcdClusterSpec `json:"spec"`
	// status is the state of the cluster as observed by the last pass.
	// +optional
	Status EtcdClusterStatus `json:"status,omitzero"`
}

// EtcdClusterList is a list of EtcdClusters.
//
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdCluster `json:"items"`
}

// EtcdClusterSpec is the desired state of an etcd cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.etcd.quota) || string(self.etcd.quota).size() > 36 || string(self.etcd.quota).matches('[eE].{4}') || string(self.storage.size).size() > 36 || string(self.storage.size).matches('[eE].{4}') || !isQuantity(string(self.etcd.quota)) || !isQuantity(string(self.storage.size)) || quantity(string(self.etcd.quota)).compareTo(quantity(string(self.storage.size))) <= 0",message="etcd.quota must fit into storage.size (default 8Gi); leave room for the write-ahead log and defragmentation. The default of etcd.quota is half of the volume, up to 2Gi",fieldPath=".etcd.quota"
//
// +kubebuilder:validation:XValidation:rule="!has(self.image.digests) || self.image.digests.size() == 0 || self.version in self.image.digests",message="image.digests must contain a digest for spec.version if it is set; a digest is valid for one version only",fieldPath=".image.digests"
//
// +kubebuilder:validation:XValidation:rule="!has(self.adopt) || has(self.adopt.caSecretName) == (self.tls.mode == 'Managed')",message="adopt requires caSecretName or, if the cluster to adopt does not use TLS, tls.mode Disabled",fieldPath=".adopt"
// +kubebuilder:validation:XValidation:rule="!has(self.adopt) || !has(self.restore) && !has(self.recovery) && !has(self.networkPolicy)",message="omit restore, recovery and networkPolicy; once the last guest has left, remove adopt to declare recovery or networkPolicy",fieldPath=".adopt"
type EtcdClusterSpec struct {
	// replicas is the number of voting members, from 1 to 9. Defaults to 3. Odd numbers are best: an even number does
	// not tolerate more failures than the odd number below it. If git does not set replicas, the scale subresource may
	// set it.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the etcd version as MAJOR.MINOR.PATCH, 3.5.3 or newer.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)$')",message="an etcd version must be MAJOR.MINOR.PATCH, such as 3.6.5, without a leading v"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)$') || self.matches('^3[.]([5-9]|[1-9][0-9]+)[.]')",message="only etcd 3 versions from 3.5.3 are supported"
	// +kubebuilder:validation:XValidation:rule="!(self in ['3.5.0', '3.5.1', '3.5.2'])",message="3.5.0 to 3.5.2 can lose committed data in a crash (etcd issue 13766); use 3.5.3 or newer"
	Version string `json:"version"`

	// image specifies the etcd image and the registry from which it is pulled.
	// +optional
	// +kubebuilder:default={}
	Image ImageSpec `json:"image,omitzero"`

	// storage specifies the volume of each member.
	// +optional
	// +kubebuilder:default={}
	Storage StorageSpec `json:"storage,omitzero"`

	// tls specifies TLS between members, and between clients and members.
	// +optional
	// +kubebuilder:default={}
	TLS TLSSpec `json:"tls,omitzero"`

	// etcd configures etcd itself.
	// +optional
	// +kubebuilder:default={}
	Etcd EtcdOptions `json:"etcd,omitzero"`

	// pod configures the members' pods.
	// +optional
	// +kubebuilder:default={}
	Pod PodSpec `json:"pod,omitzero"`

	// networkPolicy restricts connections to the members. It allows only other members, Quorate's own pods, the
	// cluster's backup pods, and the peers listed here. If unset, there is no NetworkPolicy, and nothing is restricted.
	// It requires a network plugin that enforces NetworkPolicies.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// backup specifies when and where the cluster is backed up. If unset, the cluster is not backed up.
	// +optional
	Backup *BackupSpec `json:"backup,omitempty"`

	// restore specifies the backup from which a new cluster is created. If unset, the cluster starts without data. It
	// has no effect on a cluster that has formed.
	// +optional
	Restore *RestoreSpec `json:"restore,omitempty"`

	// adopt specifies a running etcd cluster that the replicas join, so that they can take over from its members, the
	// guests. If unset, the replicas form a new cluster. It has no effect on a cluster that has formed otherwise.
	// +optional
	Adopt *AdoptionSpec `json:"adopt,omitempty"`

	// recovery requests a new cluster that replaces this cluster after it has permanently lost its majority. If unset,
	// Quorate waits for the members to come back.
	// +optional
	Recovery *RecoverySpec `json:"recovery,omitempty"`

	// replaceAfter is how long a member may be unresponsive before it is replaced, such as 15m. A member is replaced
	// only if the other members have quorum. If unset, members are not replaced only because they are unresponsive.
	// Regardless of replaceAfter, a member is replaced if its volume or node is provably gone, if its etcd keeps
	// crashing while the other members run, or if its data differs from the data of most members.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('10s') && duration(self) <= duration('8760h')",message="replaceAfter must be a duration between 10s and 8760h, such as 15m"
	ReplaceAfter *Duration `json:"replaceAfter,omitempty"`

	// suspend makes passes report the status without changing anything.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// lifecycle specifies whether the members run: Running, Stopped or Deleted. Defaults to Running. Stopped removes
	// the pods and keeps the volumes and the cluster's identity. Deleted removes the cluster, and storage.retention
	// specifies what happens to its volumes. Removing the declaration from git does not delete anything.
	// +optional
	// +kubebuilder:default=Running
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
}

// Lifecycle specifies whether the members of a cluster run.
//
// +kubebuilder:validation:Enum=Running;Stopped;Deleted
type Lifecycle string

// The lifecycles.
const (
	LifecycleRunning Lifecycle = "Running"
	LifecycleStopped Lifecycle = "Stopped"
	LifecycleDeleted Lifecycle = "Deleted"
)

// ImageSpec specifies the etcd image. Its tag is v followed by spec.version.
type ImageSpec struct {
	// repository is the image repository, without a tag. Defaults to gcr.io/etcd-development/etcd.
	// +optional
	// +kubebuilder:default="gcr.io/etcd-development/etcd"
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",message="an image repository must not have a tag or digest, such as gcr.io/etcd-development/etcd"
	Repository string `json:"repository,omitempty"`
	// digests maps etcd versions to image digests. If set, it must contain spec.version, and pods run exactly the image
	// with that digest. Add the digest of the next version before spec.version changes, or in the same commit. Keep the
	// digest of the previous version so that you can go back.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^3[.](0|[1-9][0-9]{0,4})[.](0|[1-9][0-9]{0,4})$'))",message="a digest key must be an etcd version, such as 3.6.5"
	Digests map[string]ImageDigest `json:"digests,omitempty"`
	// pullSecrets lists the image pull Secrets, in the cluster's namespace.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	PullSecrets []SecretReference `json:"pullSecrets,omitempty"`
}

// ImageDigest is the digest of an image: sha256: followed by 64 hexadecimal digits.
//
// +kubebuilder:validation:MaxLength=71
// +kubebuilder:validation:Pattern=`^sha256:[a-f0-9]{64}$`
type ImageDigest string

// SecretReference names a Secret in the cluster's namespace.
type SecretReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Retention specifies whether volumes are kept or deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type Retention string

// The retention policies.
const (
	RetentionRetain Retention = "Retain"
	RetentionDelete Retention = "Delete"
)

// StorageSpec specifies the volume of each member.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",message="storageClassName is immutable, because the class of an existing volume is fixed",fieldPath=".storageClassName"
type StorageSpec struct {
	// size is the size of each member's volume. Defaults to 8Gi. It can be increased but not reduced.
	// +optional
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="string(self).size() <= 36 && !string(self).matches('[eE].{4}')",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="a member's volume needs at least 256Mi; is a unit missing, as in 8Gi?"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || string(oldSelf).size() > 36 || string(oldSelf).matches('[eE].{4}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="a volume cannot shrink"
	Size resource.Quantity `json:"size,omitzero"`
	// storageClassName is the StorageClass of the volumes. Defaults to the default StorageClass of the Kubernetes
	// cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')",message="storageClassName must be the name of a StorageClass"
	StorageClassName *string `json:"storageClassName,omitempty"`
	// retention specifies what happens to the volumes when lifecycle is Deleted: Retain or Delete. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	Retention Retention `json:"retention,omitempty"`
}

// TLSMode specifies who provides certificates.
//
// +kubebuilder:validation:Enum=Managed;Disabled
type TLSMode string

// The TLS modes. Managed: the cluster has its own CA, and members and clients authenticate each other. Disabled:
// connections are not encrypted.
const (
	TLSManaged  TLSMode = "Managed"
	TLSDisabled TLSMode = "Disabled"
)

// TLSSpec specifies TLS between members, and between clients and members.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || !has(oldSelf.mode) || self.mode == oldSelf.mode",message="tls.mode is immutable, because members with TLS and members without it cannot form a cluster",fieldPath=".mode"
type TLSSpec struct {
	// mode specifies who provides certificates. Managed: the cluster has its own CA, and members and clients
	// authenticate each other. Disabled: connections are not encrypted. Defaults to Managed.
	// +optional
	// +kubebuilder:default=Managed
	Mode TLSMode `json:"mode,omitempty"`
	// serviceNames lists other Services in the cluster's namespace through which clients reach the members, such as the
	// Service of an adopted cluster. The members' server certificates are also valid for the names of these Services,
	// such as NAME.NAMESPACE and NAME.NAMESPACE.svc. Changing the list does not restart pods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	ServiceNames []ServiceName `json:"serviceNames,omitempty"`
}

// ServiceName is the name of a Service.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="serviceNames must be Service names without a namespace"
type ServiceName string

// Duration is a length of time such as 100ms, 90s, 5m or 1h30m. The units are ms, s, m and h.
//
// +kubebuilder:validation:MaxLength=32
type Duration string
