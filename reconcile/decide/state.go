package decide

import (
	"fmt"
	"strconv"
	"time"
)

// ID is an etcd cluster ID or member ID. Zero means that the cluster or member does not have an ID yet. It is printed
// in hexadecimal, as in etcd's own tools.
type ID uint64

// String returns the hexadecimal form.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText returns the hexadecimal form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("parse ID %q: %w", text, err)
	}
	*id = ID(n)
	return nil
}

// State is the complete input of one decision. It does not contain secrets, and marshals to JSON.
type State struct {
	// Name is the name of the cluster. Its replicas are named Name-0, Name-1, and so on.
	Name string `json:"name"`
	// Namespace is the namespace of the cluster, for the commands in messages. It may be empty in simulated states.
	Namespace string `json:"namespace,omitempty"`
	// Now is the time of the observation.
	Now time.Time `json:"now"`
	// Declared is the desired state in git.
	Declared Declared `json:"declared"`
	// Record contains the information that earlier passes stored in the cluster.
	Record Record `json:"record"`
	// FoundingID is the cluster ID that etcd derives from the token and the recorded initial members. It is zero if the
	// recorded members may no longer bootstrap the cluster, or if the ID is unknown.
	FoundingID ID `json:"foundingID,omitempty"`
	// ReportedClusterID is the cluster ID in the status of the custom resource, or zero if it is missing or superseded
	// by the record. It is copied there from a record, so a record without a cluster ID is older than the status.
	ReportedClusterID ID `json:"reportedClusterID,omitempty"`
	// Objects compares the Kubernetes objects with the desired objects.
	Objects Objects `json:"objects"`
	// Replicas are the slots that have a pod or a volume, in any order. They are read before etcd is queried, so a
	// member that responds runs on this volume or an older volume.
	Replicas []Replica `json:"replicas,omitempty"`
	// Membership is etcd's own view.
	Membership Membership `json:"membership"`
	// Source is the view of the cluster to adopt, with its members' hashes. It is observed only while nothing is
	// recorded.
	Source Membership `json:"source,omitzero"`
	// CA is the observed state of the CA.
	CA CA `json:"ca,omitzero"`
	// Certificates lists the existing certificates with their validity periods, in any order.
	Certificates []Certificate `json:"certificates,omitempty"`
	// ClientIsRoot is true if the client certificate gives applications etcd's root role. Quorate leaves that unchanged
	// while authentication is enabled, because the applications' rights may depend on the role.
	ClientIsRoot bool `json:"clientIsRoot,omitempty"`
	// ReportedVoidRecovery is the record's VoidRecovery when the status was last written. It survives loss or
	// restoration of the record.
	ReportedVoidRecovery string `json:"reportedVoidRecovery,omitempty"`
	// ReportedVersion is the oldest version that a member ran when the status was last written, or empty if members
	// have never run.
	ReportedVersion string `json:"reportedVersion,omitempty"`
	// Generation is the generation of the custom resource, which Kubernetes increases with every spec change, or zero
	// if the custom resource does not exist.
	Generation int64 `json:"generation,omitempty"`
	// LastSeen are the members as last reported in the status, while a recovery is requested.
	LastSeen []SeenMember `json:"lastSeen,omitempty"`
	// WindowClosed is true outside the maintenance window for defragmentation, if git declares one.
	WindowClosed bool `json:"windowClosed,omitempty"`
	// DefragmentationRequest is the newest request to defragment all members once, according to the custom resource's
	// status.
	DefragmentationRequest DefragmentationRequest `json:"defragmentationRequest,omitzero"`
	// Comparison is the most recent comparison of the voters' data, according to the custom resource's status.
	Comparison Comparison `json:"comparison,omitzero"`
	// Backups is the observed state of backups.
	Backups Backups `json:"backups,omitzero"`
	// Restore is the observed state of the data being restored.
	Restore Restore `json:"restore,omitzero"`
	// Recovery is the observed state of a new cluster being created from the remains of a lost cluster.
	Recovery Recovery `json:"recovery,omitzero"`
	// LockHolder describes the other process that holds this cluster's lease, or is empty.
	LockHolder string `json:"lockHolder,omitempty"`
	// Waited lists the waits since passes last changed something, according to the custom resource's status.
	Waited []Waited `json:"waited,omitempty"`
	// Repeated lists actions that passes have carried out in a row, according to the custom resource's status.
	Repeated []Repeated `json:"repeated,omitempty"`
	// Unseen lists objects that could not be read because a right is missing, and the information that is unknown for
	// that reason. A pass that acts has read everything.
	Unseen []string `json:"unseen,omitempty"`
}

// Declared is the part of the desired state that decisions depend on.
type Declared struct {
	Replicas  int    `json:"replicas"`
	Version   string `json:"version"`
	Suspended bool   `json:"suspended,omitempty"`
	// Lifecycle is Running, Stopped or Deleted.
	Lifecycle Lifecycle `json:"lifecycle"`
	// SpecHash is a digest of everything that changes how a pod runs, except the version.
	SpecHash string `json:"specHash"`
	// Digest covers the whole spec and the run's settings that affect objects. No rule reads it; it ties a run to the
	// approved plan.
	Digest string `json:"digest,omitempty"`
	// Storage describes the size and class of the volumes.
	Storage string `json:"storage,omitempty"`
	// Quota is the database quota of each member, in bytes, or zero if unknown.
	Quota int64 `json:"quota,omitempty"`
	// Defragmentation is when members are defragmented.
	Defragmentation Defragmentation `json:"defragmentation,omitzero"`
	// RecoversSpace is true if passes make room in full databases, and then disarm NOSPACE alarms.
	RecoversSpace bool `json:"recoversSpace,omitempty"`
	// CorruptionCheck is the maximum time between two comparisons of the voters' data, or zero if passes do not compare
	// it periodically.
	CorruptionCheck time.Duration `json:"corruptionCheck,omitempty"`
	// Retention is whether volumes are kept when the lifecycle is Deleted: Retain or Delete.
	Retention Retention `json:"retention,omitempty"`
	// ReplaceAfter is how long a member may be unresponsive before it is replaced. Zero means that unresponsive members
	// are not replaced.
	ReplaceAfter time.Duration `json:"replaceAfter,omitempty"`
	// BacksUp is true if git declares backups and does not suspend them.
	BacksUp bool `json:"backsUp,omitempty"`
	// BacksUpBeforeUpgrade is true if a backup must exist before any pod is moved to a different etcd version.
	BacksUpBeforeUpgrade bool `json:"backsUpBeforeUpgrade,omitempty"`
	// BacksUpBeforeDeletion is true if a backup must exist before any part of the cluster is stopped or deleted.
	BacksUpBeforeDeletion bool `json:"backsUpBeforeDeletion,omitempty"`
	// BackupDeadline is the maximum duration of a backup.
	BackupDeadline time.Duration `json:"backupDeadline,omitempty"`
	// BackupTo is the location where backups are stored.
	BackupTo string `json:"backupTo,omitempty"`
	// VerifiesBackups is true if backups must be verified before they count.
	VerifiesBackups bool `json:"verifiesBackups,omitempty"`
	// Restore is the backup from which a new cluster is created.
	Restore RestoreSource `json:"restore,omitzero"`
	// Recovery is the requested recovery of a cluster that has permanently lost its majority.
	Recovery RecoveryOrder `json:"recovery,omitzero"`
	// Adoption is the running cluster that the replicas join.
	Adoption AdoptionOrder `json:"adoption,omitzero"`
	// Orphaned is a message that git no longer declares this cluster, and at which revision. It is empty if git
	// declares the cluster.
	Orphaned string `json:"orphaned,omitempty"`
	// RenamedFrom is the cluster that git seems to have renamed or moved to this cluster, or empty if this cluster
	// seems new.
	RenamedFrom string `json:"renamedFrom,omitempty"`
	// ConfirmedMembers is the value of ListToConfirm for the member list that git confirms as complete, although that
	// list lacks at least half of the recorded voters. It has not been validated, and may be empty.
	ConfirmedMembers string `json:"confirmedMembers,omitempty"`
	// Problems are the reasons why this declaration cannot be applied, or empty if it can.
	Problems []string `json:"problems,omitempty"`
}

// Lifecycle is the desired state of a cluster as a whole.
type Lifecycle string

// The lifecycles.
const (
	// Running means that the cluster's pods run.
	Running Lifecycle = "Running"
	// Stopped means that the cluster's pods do not run, and its data is kept.
	Stopped Lifecycle = "Stopped"
	// Deleted means that the cluster's pods and objects are deleted, and also its data if the retention is Delete.
	Deleted Lifecycle = "Deleted"
)

// Retention is whether a deleted cluster's volumes are kept.
type Retention string

// The retentions.
const (
	Retain Retention = "Retain"
	Delete Retention = "Delete"
)

// Mode is the kind of configuration file with which a member starts.
type Mode string

// The modes.
const (
	// Founding means initial-cluster-state new, with all initial members listed. It is used only before the member's
	// first start.
	Founding Mode = "Founding"
	// Joining means initial-cluster-state existing, with the member list at that time. It is used only until the
	// learner has started.
	Joining Mode = "Joining"
	// Sealed means that the file does not name its own member, so that etcd starts only with existing data.
	Sealed Mode = "Sealed"
	// Restoring is like Sealed, but pods do not run because the volume is being filled from a backup.
	Restoring Mode = "Restoring"
)

// Record is the information that Quorate stores about a cluster between passes, in the same ConfigMap as the members'
// files. Only the record determines how a member may start.
type Record struct {
	// Token is the nonce in the initial-cluster-token, or empty if there is no record.
	Token string `json:"token,omitempty"`
	// ClusterID is zero until the cluster has formed.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members lists the members by ascending ordinal.
	Members []RecordedMember `json:"members,omitempty"`
	// LogVersion is the oldest minor version, such as 3.6, whose entries a member may still have in its log, or empty
	// if unknown.
	LogVersion string `json:"logVersion,omitempty"`
	// CA is the fingerprint of the CA that members trust. It is empty without TLS, or if the CA is not known yet.
	CA string `json:"ca,omitempty"`
	// Removed are the slots whose member is gone, by ascending ordinal. Their volumes are deleted before the slots are
	// reused.
	Removed []RemovedMember `json:"removed,omitempty"`
	// RestoredFrom is the backup from which the cluster was created, or empty if it was bootstrapped without data.
	RestoredFrom string `json:"restoredFrom,omitempty"`
	// Restored describes the data that the first member must report before the cluster ID is recorded. It is zero if
	// the member has reported that data, or if the expected data is unknown.
	Restored RestoredData `json:"restored,omitzero"`
	// Uncompared is true if the members' data must be compared once, when there are as many members as declared,
	// because all were created from one backup.
	Uncompared bool `json:"uncompared,omitempty"`
	// Recovery is the most recently begun recovery of a lost cluster, or zero.
	Recovery RecordedRecovery `json:"recovery,omitzero"`
	// VoidRecovery is the Word of a request to recover this cluster that had no effect because the cluster had a
	// quorum, or that may have had no effect because the record was lost. Otherwise, it is empty.
	VoidRecovery string `json:"voidRecovery,omitempty"`
	// JoinedTogether is true if two learners are about to be listed at the same time, have been, or may have been. etcd
	// before 3.6 cannot read the log of such a cluster.
	JoinedTogether bool `json:"joinedTogether,omitempty"`
	// VoidConfirmation is the digest of the last value of the confirm-members annotation that was observed while no
	// member was missing. That value is no longer valid.
	VoidConfirmation string `json:"voidConfirmation,omitempty"`
	// Replaced counts how often the member of a slot was replaced recently, by ascending ordinal.
	Replaced []Replacements `json:"replaced,omitempty"`
	// Adopted is the ID of the cluster that the replicas joined, or zero if the cluster was not adopted.
	Adopted ID `json:"adopted,omitempty"`
	// Guests are the members of the adopted cluster that Quorate does not manage, in ascending order. Only guests that
	// git releases are ever removed.
	Guests []ID `json:"guests,omitempty"`
}

// Replacements is how often the member of a slot was replaced, each time within a day of the previous replacement.
type Replacements struct {
	Ordinal int       `json:"ordinal"`
	Times   int       `json:"times"`
	Last    time.Time `json:"last"`
}

// RemovedMember describes the remains of a member that etcd no longer lists.
type RemovedMember struct {
	Ordinal int `json:"ordinal"`
	// VolumeUID is the UID of the volume that was in the slot when the member was found to be gone, or empty if there
	// was no volume.
	VolumeUID string `json:"volumeUID,omitempty"`
	// LostCluster is the ID of the lost cluster whose data the volume holds and from which this cluster was created.
	// Such a volume is kept until git requests its deletion (oldVolumes: Delete in spec.recovery) or it is deleted
	// manually. Otherwise, LostCluster is zero.
	LostCluster ID `json:"lostCluster,omitempty"`
}

// Kept reports whether the volume is kept until git requests its deletion or it is deleted manually.
func (m RemovedMember) Kept() bool { return m.LostCluster != 0 }

// RecordedMember is a member in the record.
type RecordedMember struct {
	Ordinal int  `json:"ordinal"`
	Mode    Mode `json:"mode"`
	// ID is the member's ID, and VolumeUID the UID of the volume with its data. Both are known once the member is
	// sealed.
	ID        ID     `json:"id,omitempty"`
	VolumeUID string `json:"volumeUID,omitempty"`
	// Learner is true if the member was a learner when it was recorded, and etcd has not listed it as a voter since.
	Learner bool `json:"learner,omitempty"`
	// Leaving is true if Quorate is about to remove the member from etcd. It shows that the removal was intended, even
	// if etcd then lists too few of the recorded members.
	Leaving bool `json:"leaving,omitempty"`
}

// Objects compares the cluster's Kubernetes objects with the desired objects. Each entry is one object and its problem,
// such as "Service a-client: missing".
type Objects struct {
	// DeclarationDiffers is true if the custom resource is missing or differs from git.
	DeclarationDiffers bool `json:"declarationDiffers,omitempty"`
	// Drift lists missing or changed objects, including the custom resource.
	Drift []string `json:"drift,omitempty"`
	// Foreign lists unmanaged objects that have one of the cluster's names.
	Foreign []string `json:"foreign,omitempty"`
	// Relabelled lists the cluster's own objects that have lost identifying labels, such as "Pod a-1 has lost
	// app.kubernetes.io/managed-by=quorate".
	Relabelled []string `json:"relabelled,omitempty"`
	// Terminating lists objects that Kubernetes is deleting.
	Terminating []string `json:"terminating,omitempty"`
	// Irreplaceable lists lost objects that must not be recreated while members depend on the old objects. Guests
	// depend on the CA of the cluster to adopt.
	Irreplaceable []string `json:"irreplaceable,omitempty"`
	// Rewritten are fields that an admission policy or webhook sets to a value other than the applied value, in any
	// order. Drift also lists the fields that are not accepted.
	Rewritten []RewrittenField `json:"rewritten,omitempty"`
	// RunsVersion and RunsHash are the version and SpecHash that the StatefulSet gives to new pods, or empty without a
	// StatefulSet.
	RunsVersion string `json:"runsVersion,omitempty"`
	RunsHash    string `json:"runsHash,omitempty"`
	// RunsReplicas is the StatefulSet's replica count.
	RunsReplicas int `json:"runsReplicas,omitempty"`
	// RunsToken is the StatefulSet's cluster token for new volumes, or empty without a StatefulSet.
	RunsToken string `json:"runsToken,omitempty"`
	// Remaining are the existing objects of the cluster, except the custom resource.
	Remaining []string `json:"remaining,omitempty"`
	// RunsStorage is the size and class that the StatefulSet gives to new volumes. Kubernetes does not allow changes to
	// it.
	RunsStorage string `json:"runsStorage,omitempty"`
}
