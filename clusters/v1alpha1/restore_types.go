package v1alpha1

// RestoreSpec specifies the backup from which a new cluster is created. It has no effect once the cluster has formed.
type RestoreSpec struct {
	// from is the store that contains the backup. The same stores are allowed as for backups.
	// +required
	From BackupDestination `json:"from"`
	// cluster is the cluster that was backed up, as NAMESPACE/NAME. Defaults to the namespace and name of this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]*[a-z0-9])?$')",message="cluster must be NAMESPACE/NAME, such as prod/a"
	Cluster string `json:"cluster,omitempty"`
	// backup is the time of the backup, as shown by quorate backups list, such as 20261121t180000z. Defaults to the
	// newest backup that is usable when the cluster is created. It is required if the store contains backups with
	// several cluster IDs.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{8}t[0-9]{6}z$')",message="a backup must be named by its time, such as 20261121t180000z"
	Backup string `json:"backup,omitempty"`
	// identitySecretName is the name of a Secret in the cluster's namespace. Its key identity.txt contains the age
	// identity to decrypt an encrypted backup.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
	// revisionBump is the number by which etcd's revision is raised, so that existing watchers list again instead of
	// missing changes. Defaults to 1000000000.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	RevisionBump int64 `json:"revisionBump,omitempty"`
	// deadline is the maximum duration of the restore, including retries. Defaults to 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}
