package v1alpha1

// RecoverySpec says what is to be done about a cluster that has lost its majority for good: a new one is made in its
// place, of the data of a member that is left, or of a backup. What only members had that are lost, or what was written
// after the backup, is lost. It has no effect on a cluster that has a quorum, nor on any but the one that it names, so
// that it cannot come into effect twice. It takes a run with --allow-recovery.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) || !has(self.lost) || !(self.member in self.lost)",message="the member that is left is not lost: take it out of lost",fieldPath=".lost"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || has(self.lost) && self.member in self.lost",message="what the member has is not used where there is a backup: name it in lost as well",fieldPath=".lost"
type RecoverySpec struct {
	// clusterID of the cluster that is lost, as status.clusterID says it.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^0*[1-9a-f][0-9a-f]*$')",message="clusterID is the status.clusterID of the cluster that is lost, in hexadecimal digits"
	ClusterID string `json:"clusterID"`
	// member that is left, by its ordinal: 1 for a-1. With backup, it is the one whose volume takes the data of the
	// backup; what is on it is kept there, and a volume is made where there is none.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	Member *int32 `json:"member"`
	// lost are the members, by their ordinals, whose data are lost for good although there is a volume claim of theirs:
	// one that Kubernetes has made again counts, too, since what it is bound to may be the volume that there was. If a
	// majority can be brought back instead, nothing is lost. What is named here is given up.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	Lost []int32 `json:"lost,omitempty"`
	// backup that the new cluster is made of, in place of the data of a member: then the member, and every other one that has
	// a volume, is to be named in lost. What was written after the backup is lost.
	// +optional
	Backup *RecoveryBackup `json:"backup,omitempty"`
	// oldVolumes says what becomes of the volumes of the other members of the cluster that clusterID names, once the new
	// one serves: they are deleted one at a time, each when a member is to take its place. No member can be added where
	// one is retained.
	// +optional
	// +kubebuilder:default=Retain
	OldVolumes Retention `json:"oldVolumes,omitempty"`
	// revisionBump is by how much the revision of etcd is raised, so that whatever has watched the cluster before lists
	// again instead of missing changes.
	// +optional
	// +kubebuilder:default=1000000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	RevisionBump int64 `json:"revisionBump,omitempty"`
	// deadline is how long the recovery may take, with what had to be tried again.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="deadline must be a duration between 1m and 24h, such as 1h"
	Deadline Duration `json:"deadline,omitempty"`
}

// RecoveryBackup is a backup of a cluster that a new one is made of, in its place.
type RecoveryBackup struct {
	// from is the store that holds it. Which places are allowed is the same setting as for backups.
	// +required
	From BackupDestination `json:"from"`
	// name is the time of the backup, as quorate backups list shows it, such as 20261121t180000z.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{8}t[0-9]{6}z$')",message="a backup is named by its time, such as 20261121t180000z"
	Name string `json:"name"`
	// identitySecretName is a Secret of the cluster's namespace whose key identity.txt holds an age identity, for a backup
	// that is encrypted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="identitySecretName must be the name of a Secret"
	IdentitySecretName string `json:"identitySecretName,omitempty"`
}
