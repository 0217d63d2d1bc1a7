package v1alpha1

// RecoverySpec requests a new cluster that replaces this cluster after it has permanently lost its majority. The new
// cluster is created from the data of a remaining member, or from a backup. Data that only lost members have, or that
// was written after the backup, is lost. RecoverySpec has no effect if the cluster has quorum or its ID is not
// clusterID, so it cannot take effect twice. It requires a run with --allow-recovery.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) || !has(self.lost) || !(self.member in self.lost)",message="the surviving member is not lost; remove it from lost",fieldPath=".lost"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || has(self.lost) && self.member in self.lost",message="the member's data is not used if a backup is set; list the member in lost as well",fieldPath=".lost"
type RecoverySpec struct {
	// clusterID is the ID of the lost cluster, in hexadecimal, as in status.clusterID.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="clusterID must be the status.clusterID of the lost cluster, in hexadecimal digits"
	ClusterID string `json:"clusterID"`
	// member is the ordinal of the remaining member, such as 1 for a-1. If backup is set, the backup is restored to
	// this member's volume. In that case, existing data on the volume is kept there, and a missing volume is created.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Member *int32 `json:"member"`
	// lost lists the ordinals of members whose data is permanently lost although their PersistentVolumeClaim exists,
	// and whose data is discarded. This includes members whose claim has been recreated by Kubernetes, because the
	// claim may be bound to the old volume. If you can bring back a majority instead, no data is lost.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	Lost []int32 `json:"lost,omitempty"`
	// backup is the backup from which the new cluster is created, instead of from a member's data. lost must then list
	// the member and all other members that have a volume. Data written after the backup is lost.
	// +optional
	Backup *RecoveryBackup `json:"backup,omitempty"`
	// oldVolumes specifies what happens to the volumes of the lost cluster's other members once the new cluster serves:
	// Retain or Delete. Defaults to Retain. Delete removes the volumes one at a time, each when a new member takes its
	// place. However, a volume that may hold the right data is retained: either etcd had found that members held
	// different data, or the record no longer shows whether it had. A retained volume prevents a new member from taking
	// its place.
	// from taking its place.
	// +optional
	// +kubebuilder:default=Retain
	OldVolumes Retention `json:"oldVolumes,omitempty"`
	// revisionBump is the number by which etcd's revision is raised, so that existing watchers list again instead of
	// missing changes. Defaults to 1000000000.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	RevisionBump int64 `json:"revisionBump,omitempty"`
	// deadline is the maximum duration of the recovery, including retries. Defaults to 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}

// RecoveryBackup is the backup from which the new cluster is created.
type RecoveryBackup struct {
	// from is the store that contains the backup. The same stores are allowed as for backups.
	// +required
	// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.volume)].filter(given, given).size() == 1",message="set exactly one store: s3, gcs, azure or volume"
	From BackupDestination `json:"from"`
	// name is the time of the backup, as shown by quorate backups list, such as 20261121t180000z.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{8}t[0-9]{6}z$')",message="a backup must be named by its time, such as 20261121t180000z"
	Name string `json:"name"`
	// identitySecretName is the name of a Secret in the cluster's namespace. Its key identity.txt contains the age
	// identity to decrypt an encrypted backup.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
}
