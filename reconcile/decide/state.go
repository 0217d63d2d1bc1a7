package decide

import (
	"fmt"
	"strconv"
	"time"
)

// ID is an ID of etcd's: of a cluster or of a member. Zero means that there is none yet. It prints
// as etcd's own tools print it, in hexadecimal.
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

// State is everything that one decision may look at. It holds no secrets, and marshals to JSON.
type State struct {
	// Name of the cluster; its replicas are Name-0, Name-1, ….
	Name string `json:"name"`
	// Now is the time at which the rest was seen.
	Now time.Time `json:"now"`
	// Declared is what git asks for.
	Declared Declared `json:"declared"`
	// Record is what earlier passes wrote down in the cluster.
	Record Record `json:"record"`
	// FoundingID is the cluster ID that etcd derives from the token and the founding members on record.
	// Zero if no member on record may found the cluster, or if it is not known.
	FoundingID ID `json:"foundingID,omitempty"`
	// ReportedClusterID is the cluster ID in the status of the custom resource; zero if there is
	// none, or if the record supersedes it. It gets there from a record, so that a record without one
	// is older than the status.
	ReportedClusterID ID `json:"reportedClusterID,omitempty"`
	// Objects is how the Kubernetes objects compare with what they should be.
	Objects Objects `json:"objects"`
	// Replicas are the slots that have a pod or a volume, in any order. They are seen before etcd
	// is asked, so that a member that answers had this volume or an older one.
	Replicas []Replica `json:"replicas,omitempty"`
	// Membership is etcd's own word.
	Membership Membership `json:"membership"`
	// CA is what is seen of the CA.
	CA CA `json:"ca,omitzero"`
	// Certificates are those that there are, in any order, and how long they are good for.
	Certificates []Certificate `json:"certificates,omitempty"`
	// ClientIsRoot: applications are etcd's superuser by their certificate, and stay it, since
	// authentication is on: they may have their rights by that.
	ClientIsRoot bool `json:"clientIsRoot,omitempty"`
	// ReportedVoidRecovery is the VoidRecovery of the record when the status was last written. It survives a record that is
	// lost or restored.
	ReportedVoidRecovery string `json:"reportedVoidRecovery,omitempty"`
	// ReportedVersion is the oldest version that a member ran when the status was last written;
	// empty if none ever did.
	ReportedVersion string `json:"reportedVersion,omitempty"`
	// Generation of the custom resource, which Kubernetes raises with every change of its spec; zero
	// if there is none.
	Generation int64 `json:"generation,omitempty"`
	// LastSeen are the members as the status last said, while a recovery is ordered.
	LastSeen []SeenMember `json:"lastSeen,omitempty"`
	// Backups is what is seen of backups.
	Backups Backups `json:"backups,omitzero"`
	// Restore is what is seen of the data being restored.
	Restore Restore `json:"restore,omitzero"`
	// Recovery is what is seen of a new cluster being made of what is left of a lost one.
	Recovery Recovery `json:"recovery,omitzero"`
	// LockHolder is who else holds the lease of this cluster, in words; empty if nobody does.
	LockHolder string `json:"lockHolder,omitempty"`
	// Waited is what passes have waited for since they last changed anything, by the status of the
	// custom resource.
	Waited []Waited `json:"waited,omitempty"`
	// Repeated are actions that passes have carried out in a row, by the status of the custom resource.
	Repeated []Repeated `json:"repeated,omitempty"`
	// Unseen says what was not looked at for lack of a right, and what is not known for that.
	// Whoever acts has seen everything.
	Unseen []string `json:"unseen,omitempty"`
}

// Declared is what git asks for, as far as a decision depends on it.
type Declared struct {
	Replicas  int    `json:"replicas"`
	Version   string `json:"version"`
	Suspended bool   `json:"suspended,omitempty"`
	// Lifecycle is Running, Stopped or Deleted.
	Lifecycle Lifecycle `json:"lifecycle"`
	// SpecHash is a digest of all that makes a pod run differently, the version left out.
	SpecHash string `json:"specHash"`
	// Digest covers the whole spec and the run's settings that affect objects. No rule reads it; it ties a run to the
	// approved plan.
	Digest string `json:"digest,omitempty"`
	// Storage is the size and class of the volumes, in words.
	Storage string `json:"storage,omitempty"`
	// Quota of the database of each member, in bytes; zero if it is not known.
	Quota int64 `json:"quota,omitempty"`
	// Retention says what becomes of the volumes when the lifecycle is Deleted: Retain or Delete.
	Retention Retention `json:"retention,omitempty"`
	// ReplaceAfter is how long a member may be silent before it is replaced; zero: however long.
	ReplaceAfter time.Duration `json:"replaceAfter,omitempty"`
	// BacksUp: git declares backups, and does not suspend them.
	BacksUp bool `json:"backsUp,omitempty"`
	// BacksUpBeforeUpgrade: no pod is moved to another version of etcd before there is a backup.
	BacksUpBeforeUpgrade bool `json:"backsUpBeforeUpgrade,omitempty"`
	// BacksUpBeforeDeletion: nothing of the cluster is stopped or deleted before there is a backup.
	BacksUpBeforeDeletion bool `json:"backsUpBeforeDeletion,omitempty"`
	// BackupDeadline is how long a backup may take.
	BackupDeadline time.Duration `json:"backupDeadline,omitempty"`
	// BackupTo is where backups are stored.
	BackupTo string `json:"backupTo,omitempty"`
	// VerifiesBackups: git wants backups to be verified before they count.
	VerifiesBackups bool `json:"verifiesBackups,omitempty"`
	// Restore is the backup that a new cluster is made from.
	Restore RestoreSource `json:"restore,omitzero"`
	// Recovery is what is to be done about a cluster that has lost its majority for good.
	Recovery RecoveryOrder `json:"recovery,omitzero"`
	// Orphaned says that git declares this cluster no longer, and since which revision; empty if it
	// does declare it.
	Orphaned string `json:"orphaned,omitempty"`
	// RenamedFrom says which cluster this one seems to have been until git renamed or moved it;
	// empty if it seems new.
	RenamedFrom string `json:"renamedFrom,omitempty"`
	// ConfirmedMembers are the members, and no others, that a person says etcd may list although
	// most of those on record are not among them.
	ConfirmedMembers []ID `json:"confirmedMembers,omitempty"`
	// Problems say why this declaration cannot be acted on; none if it can.
	Problems []string `json:"problems,omitempty"`
}

// Lifecycle is what git declares of a cluster as a whole.
type Lifecycle string

// Lifecycles.
const (
	// Running: its pods run.
	Running Lifecycle = "Running"
	// Stopped: its pods do not run, its data stays.
	Stopped Lifecycle = "Stopped"
	// Deleted: its pods and its objects go, and its data too if the retention says so.
	Deleted Lifecycle = "Deleted"
)

// Retention is what becomes of the volumes of a cluster that is deleted.
type Retention string

// Retentions.
const (
	Retain Retention = "Retain"
	Delete Retention = "Delete"
)

// Mode is the kind of configuration file that a member starts with.
type Mode string

// The modes.
const (
	// Founding: initial-cluster-state new, all founding members listed. Only before the member
	// first started.
	Founding Mode = "Founding"
	// Joining: initial-cluster-state existing, the member list of that moment. Only until the
	// learner has started.
	Joining Mode = "Joining"
	// Sealed: the file does not name its own member, so that etcd starts on its data or not at all.
	Sealed Mode = "Sealed"
	// Restoring: as Sealed, and no pod runs, since the volume is being filled from a backup.
	Restoring Mode = "Restoring"
)

// Record is what Quorate keeps of a cluster between passes, in the ConfigMap beside the members'
// files. It is all of the truth about how a member may start.
type Record struct {
	// Token is the nonce in the initial-cluster-token; empty if there is no record.
	Token string `json:"token,omitempty"`
	// ClusterID is zero until the cluster has formed.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members by ascending ordinal.
	Members []RecordedMember `json:"members,omitempty"`
	// LogVersion is the oldest minor version, such as 3.6, whose entries a member may still have in
	// its log; empty if that is not known.
	LogVersion string `json:"logVersion,omitempty"`
	// CA is the fingerprint of the CA that members trust; empty without TLS, or if it is not known
	// yet.
	CA string `json:"ca,omitempty"`
	// Removed are the slots whose member is gone, by ascending ordinal: their volumes go before
	// they are used again.
	Removed []RemovedMember `json:"removed,omitempty"`
	// RestoredFrom says which backup the cluster was made from; empty if it was founded without data.
	RestoredFrom string `json:"restoredFrom,omitempty"`
	// Restored is what the first member has to show before the cluster ID goes on record; zero if it has, or
	// if nothing is known.
	Restored RestoredData `json:"restored,omitzero"`
	// Uncompared: the members' data are to be compared once, when there are as many as git declares, since all
	// were made from one backup.
	Uncompared bool `json:"uncompared,omitempty"`
	// Recovery of a lost cluster that was last begun; zero if there was none.
	Recovery RecordedRecovery `json:"recovery,omitzero"`
	// VoidRecovery is the Word of an order to recover this cluster that came to nothing, since it had a quorum, or that
	// may have, since the record was lost; empty if there is none.
	VoidRecovery string `json:"voidRecovery,omitempty"`
	// JoinedTogether: two learners are about to be listed at once, have been, or may have been. etcd before 3.6 cannot
	// follow a log that says so.
	JoinedTogether bool `json:"joinedTogether,omitempty"`
	// Confirmed are the members that a person had confirmed when a list was followed that had lost
	// most of those on record, ascending.
	Confirmed []ID `json:"confirmed,omitempty"`
	// Replaced counts how often the member of a slot was replaced lately, by ascending ordinal.
	Replaced []Replacements `json:"replaced,omitempty"`
}

// Replacements is how often the member of a slot was replaced, each time within a day of the time
// before.
type Replacements struct {
	Ordinal int       `json:"ordinal"`
	Times   int       `json:"times"`
	Last    time.Time `json:"last"`
}

// RemovedMember is what a member has left behind that etcd lists no longer.
type RemovedMember struct {
	Ordinal int `json:"ordinal"`
	// VolumeUID of the volume that was in the slot when the member was seen to be gone; empty if
	// there was none.
	VolumeUID string `json:"volumeUID,omitempty"`
	// LostCluster is the ID of the cluster whose data the volume holds, if that is a lost one of which this one
	// was made: it is kept until a person gives it up. Zero if it is not.
	LostCluster ID `json:"lostCluster,omitempty"`
}

// Kept reports whether the volume stays until a person gives it up.
func (m RemovedMember) Kept() bool { return m.LostCluster != 0 }

// RecordedMember is one member in the record.
type RecordedMember struct {
	Ordinal int  `json:"ordinal"`
	Mode    Mode `json:"mode"`
	// ID of the member and UID of the volume that holds its data, known once it is sealed.
	ID        ID     `json:"id,omitempty"`
	VolumeUID string `json:"volumeUID,omitempty"`
	// Leaving: etcd is about to be told to remove it. It says whose removal it was if etcd then
	// lists too few of those on record to tell.
	Leaving bool `json:"leaving,omitempty"`
}

// Objects is how the Kubernetes objects of the cluster compare with what they should be. Each entry
// is one object and what is the matter with it, such as "Service a-client: missing".
type Objects struct {
	// DeclarationDiffers: the custom resource is missing or says something else than git.
	DeclarationDiffers bool `json:"declarationDiffers,omitempty"`
	// Drift: missing, or other than they should be; the custom resource among them.
	Drift []string `json:"drift,omitempty"`
	// Foreign: an object has one of our names and is not ours.
	Foreign []string `json:"foreign,omitempty"`
	// Relabelled: ours, and without the labels by which it is found, such as "Pod a-1 has lost
	// app.kubernetes.io/managed-by=quorate".
	Relabelled []string `json:"relabelled,omitempty"`
	// Terminating: being deleted by Kubernetes.
	Terminating []string `json:"terminating,omitempty"`
	// Irreplaceable: lost, and not to be recreated while members depend on the old one.
	Irreplaceable []string `json:"irreplaceable,omitempty"`
	// Rewritten are fields that an admission policy or webhook sets to another value than the one applied, in any
	// order. Drift lists those of them that are not accepted as well.
	Rewritten []RewrittenField `json:"rewritten,omitempty"`
	// RunsVersion and RunsHash are the version and SpecHash that the StatefulSet gives to new pods;
	// empty without one.
	RunsVersion string `json:"runsVersion,omitempty"`
	RunsHash    string `json:"runsHash,omitempty"`
	// RunsReplicas is how many pods the StatefulSet keeps.
	RunsReplicas int `json:"runsReplicas,omitempty"`
	// RunsToken is the cluster token that it makes new volumes for; empty without one.
	RunsToken string `json:"runsToken,omitempty"`
	// Remaining are the objects of the cluster that are there, the custom resource left aside.
	Remaining []string `json:"remaining,omitempty"`
	// RunsStorage is the size and class that it gives to new volumes; Kubernetes lets nobody change
	// that.
	RunsStorage string `json:"runsStorage,omitempty"`
}
