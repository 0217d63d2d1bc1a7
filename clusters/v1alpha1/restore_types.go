package v1alpha1

// RestoreSpec says which backup a new cluster is made from. It counts until the cluster has formed, and has no effect
// after that.
type RestoreSpec struct {
	// from is the store that holds the backup. Which places are allowed is the same setting as for backups.
	// +required
	From BackupDestination `json:"from"`
	// cluster whose backup it is, as NAMESPACE/NAME: unset, one that had the name and the namespace of this one.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?$')",message="cluster is NAMESPACE/NAME, such as prod/a"
	Cluster string `json:"cluster,omitempty"`
	// backup by its time, as quorate backups list shows it, such as 20261121t180000z. Unset, it is the newest one that
	// is usable when the cluster is made. If the store has backups of several cluster IDs, it must be set.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{8}t[0-9]{6}z$')",message="a backup is named by its time, such as 20261121t180000z"
	Backup string `json:"backup,omitempty"`
	// identitySecretName is a Secret of the cluster's namespace whose key identity.txt holds an age identity, for a backup
	// that is encrypted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
	// revisionBump is by how much the revision of etcd is raised, so that whatever has watched the cluster before lists
	// again instead of missing changes.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	RevisionBump int64 `json:"revisionBump,omitempty"`
	// deadline is how long the restore may take, with what had to be tried again.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}
