package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The condition types. Reasons are names of rules, except where a read failed before any rule was asked.
const (
	// ConditionReady is true when every declared member is a healthy voter and nothing is left to do.
	ConditionReady = "Ready"
	// ConditionReconciling is true while passes act or wait.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when a person is needed.
	ConditionStalled = "Stalled"
	// ConditionSourceReady is false while git cannot be read; the last applied declaration holds then.
	ConditionSourceReady = "SourceReady"
	// ConditionRemovalHeld is true while git declares the cluster no longer, along with so many others that it may be an accident,
	// and nobody has confirmed it. The last applied declaration holds then. Its message says since which revision.
	ConditionRemovalHeld = "RemovalHeld"
	// ConditionOrphaned is true while git declares the cluster no longer. Its message says since which revision.
	ConditionOrphaned = "Orphaned"
	// ConditionCertificatesValid is false when a certificate has expired or is about to. Its message says which one expires first, and when.
	ConditionCertificatesValid = "CertificatesValid"
)

// Conditions of backups.
const (
	// ConditionFieldsRewritten is true while an admission policy or webhook sets fields to other values than Quorate applies. Its message
	// names them.
	ConditionFieldsRewritten = "FieldsRewritten"
	// ConditionBackupStale is true when the newest backup that the schedule asks for has not succeeded within its deadline. Its message says
	// how old the newest one is, and why the last one failed.
	ConditionBackupStale = "BackupStale"
	// ConditionBackupUnverified is true when the newest backup that succeeded was not read back, though spec.backup.verify asks for it.
	ConditionBackupUnverified = "BackupUnverified"
	// ConditionBackupDamaged is true when a stored backup was found to be no longer what was stored, where spec.backup.reread asks for that.
	ConditionBackupDamaged = "BackupDamaged"
)

// EtcdClusterStatus is what the last pass saw.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that this status answers.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled, SourceReady, CertificatesValid with TLS; RemovalHeld or Orphaned once git declares the cluster no longer.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// declaredRevision is the revision of git that declared this cluster, as branch@sha1:commit.
	// +optional
	DeclaredRevision string `json:"declaredRevision,omitempty"`
	// declaredRevisionTime is when declaredRevision was committed, as the commit says itself; absent where that is not known, as of a directory
	// that is no repository. Written along with other news, not by itself.
	// +optional
	DeclaredRevisionTime *metav1.Time `json:"declaredRevisionTime,omitempty"`
	// declaredSource is the source that declared this cluster, such as https://git.example.com/fleet.git,path=clusters.
	// +optional
	DeclaredSource string `json:"declaredSource,omitempty"`
	// sourceRevision is the revision at which declaredSource was last read and not refused, whether it declares this cluster still or not. A
	// later one has to descend from it.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`
	// rule is the one that spoke in the last pass.
	// +optional
	Rule string `json:"rule,omitempty"`
	// clusterID is etcd's cluster ID in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// leader is the name of the member that leads.
	// +optional
	Leader string `json:"leader,omitempty"`
	// version is the oldest version of etcd that a member runs, or ran when the members last answered.
	// +optional
	Version string `json:"version,omitempty"`
	// voters is healthy voters of declared replicas, such as 3/3.
	// +optional
	Voters string `json:"voters,omitempty"`
	// replicas is the number of members that etcd lists.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of healthy voters.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector selects the pods of the members.
	// +optional
	Selector string `json:"selector,omitempty"`
	// endpoints are the URLs for clients, one per member; none until all founding members have been sealed.
	// +optional
	// +listType=atomic
	Endpoints []string `json:"endpoints,omitempty"`
	// clientSecretName is the Secret with ca.crt, tls.crt and tls.key for clients.
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`
	// members as etcd lists them.
	// +optional
	// +listType=atomic
	Members []MemberStatus `json:"members,omitempty"`
	// backup is the newest backup that succeeded, and the newest that failed since.
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`
	// restoredFrom is the backup that the cluster was made from.
	// +optional
	RestoredFrom string `json:"restoredFrom,omitempty"`
	// voidRecovery is a digest of a spec.recovery that came to nothing, since the cluster has had a quorum. It is not acted on, and has to be
	// removed and declared again if the majority is lost later.
	// +optional
	VoidRecovery string `json:"voidRecovery,omitempty"`
	// waiting is what passes have waited for, or tried in vain, since they last changed anything. What has been waited for too long becomes
	// a matter for a person: see the condition Stalled.
	// +optional
	// +listType=atomic
	Waiting []WaitStatus `json:"waiting,omitempty"`
	// repeated lists actions that passes carried out in a row because the next pass found them undone. After three times, all other
	// actions come first.
	// +optional
	// +listType=atomic
	Repeated []RepeatedAction `json:"repeated,omitempty"`
	// rewritten lists fields that an admission policy or webhook sets to another value than Quorate applies. They are applied again
	// when either value changes.
	// +optional
	// +listType=atomic
	Rewritten []RewrittenField `json:"rewritten,omitempty"`
}

// RepeatedAction is an action that passes carried out in a row.
type RepeatedAction struct {
	// rule that decided the action.
	// +required
	Rule string `json:"rule"`
	// what the action does.
	// +required
	What string `json:"what"`
	// times it was carried out.
	// +required
	Times int32 `json:"times"`
	// last is when it was last carried out.
	// +required
	Last metav1.Time `json:"last"`
}

// RewrittenField is a field that came back from the API server with another value than Quorate applied.
type RewrittenField struct {
	// object by its kind and name.
	// +required
	Object string `json:"object"`
	// field is its path in the object.
	// +required
	Field string `json:"field"`
	// by is the field manager that owns the field, if it is not Quorate.
	// +optional
	By string `json:"by,omitempty"`
	// digest of the value that was applied and of the one that came back.
	// +required
	Digest string `json:"digest"`
}

// BackupStatus is what passes have seen of backups. What is stored, the store says.
type BackupStatus struct {
	// last is the newest backup that succeeded.
	// +optional
	Last *BackupResult `json:"last,omitempty"`
	// beforeDeletion is the one that the deletion of the cluster goes by, where backup.before has Deletion, and the
	// generation that declares the deletion.
	// +optional
	BeforeDeletion *BackupResult `json:"beforeDeletion,omitempty"`
	// failed is the newest one that failed since.
	// +optional
	Failed *BackupFailure `json:"failed,omitempty"`
	// drill is the newest one that was well.
	// +optional
	Drill *DrillResult `json:"drill,omitempty"`
	// drillFailed is the newest drill that failed since.
	// +optional
	DrillFailed *BackupFailure `json:"drillFailed,omitempty"`
	// reread is what came of reading stored backups again, the last time.
	// +optional
	Reread *RereadResult `json:"reread,omitempty"`
}

// RereadResult is what is known of stored backups since some of them were read again.
type RereadResult struct {
	// job that read them.
	// +required
	Job string `json:"job"`
	// at is when it did.
	// +required
	At metav1.Time `json:"at"`
	// backups is how many good ones there were, and read how many of them were read again.
	// +optional
	Backups int64 `json:"backups,omitempty"`
	// +optional
	Read int64 `json:"read,omitempty"`
	// oldest is since when the one of them was not read that was not read for the longest time.
	// +optional
	Oldest *metav1.Time `json:"oldest,omitempty"`
	// damaged are the newest that were found damaged, then or earlier, as SLOT of CLUSTERID; more is how many there
	// are besides.
	// +optional
	// +listType=atomic
	Damaged []string `json:"damaged,omitempty"`
	// +optional
	More int64 `json:"more,omitempty"`
	// unread says why one could not be read that was due; empty if there is none.
	// +optional
	Unread string `json:"unread,omitempty"`
}

// DrillResult is a backup that was restored for practice: etcd started with it, and held what was backed up.
type DrillResult struct {
	// job that did it.
	// +required
	Job string `json:"job"`
	// slot of the backup that was restored.
	// +required
	Slot metav1.Time `json:"slot"`
	// clusterID of the cluster that was backed up, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// etcdVersion of the etcd that was started.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// finishedAt is when all of it was done.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
	// seconds that it took to fetch and check the backup, to make a data directory of it, and until etcd answered, rounded
	// up.
	// +optional
	Seconds int64 `json:"seconds,omitempty"`
	// bytes of the snapshot, before it was compressed.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// uncompared says why the data could not be compared; empty if they were, and are the same.
	// +optional
	Uncompared string `json:"uncompared,omitempty"`
}

// BackupResult is a backup that was stored.
type BackupResult struct {
	// job that took it.
	// +required
	Job string `json:"job"`
	// generation of this resource that a pass has started it for; 0 if none has.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// slot is the moment that it is for, and its name in the store.
	// +required
	Slot metav1.Time `json:"slot"`
	// to is the store that it is in.
	// +optional
	To string `json:"to,omitempty"`
	// startedAt and finishedAt are when it was begun, and when all of it was done.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
	// clusterID of the cluster that was backed up, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// revision of the key space that it holds.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// bytes of the snapshot, before it was compressed.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// verified: it was read back from the store, and is what was stored.
	// +optional
	Verified bool `json:"verified,omitempty"`
}

// BackupFailure is a backup that failed.
type BackupFailure struct {
	// job that failed.
	// +required
	Job string `json:"job"`
	// at is when it had failed for good.
	// +required
	At metav1.Time `json:"at"`
	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// WaitStatus is something that passes wait for.
type WaitStatus struct {
	// rule that waits.
	// +required
	Rule string `json:"rule"`
	// for what exactly, such as the members that are not well.
	// +optional
	For string `json:"for,omitempty"`
	// since when it is waited for.
	// +required
	Since metav1.Time `json:"since"`
	// seen is when that was last written down. It is written again every ten minutes; what nobody has seen for half an hour does not count.
	// +required
	Seen metav1.Time `json:"seen"`
}

// MemberRole is the part that a member plays in Raft.
//
// +kubebuilder:validation:Enum=Leader;Voter;Learner
type MemberRole string

// The roles.
const (
	RoleLeader  MemberRole = "Leader"
	RoleVoter   MemberRole = "Voter"
	RoleLearner MemberRole = "Learner"
)

// MemberHealth says whether a member answered in the last pass.
//
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unreachable
type MemberHealth string

// The healths. Unhealthy: it answers and says that something is wrong. Unreachable: it does not answer.
const (
	MemberHealthy     MemberHealth = "Healthy"
	MemberUnhealthy   MemberHealth = "Unhealthy"
	MemberUnreachable MemberHealth = "Unreachable"
)

// MemberStatus is one entry of etcd's member list, and what that member says of itself.
type MemberStatus struct {
	// name of the member, which is that of its pod.
	// +optional
	Name string `json:"name,omitempty"`
	// id of the member in hexadecimal.
	// +required
	ID string `json:"id"`
	// role in Raft.
	// +required
	Role MemberRole `json:"role"`
	// version of etcd that it runs.
	// +optional
	Version string `json:"version,omitempty"`
	// health as of the last pass.
	// +required
	Health MemberHealth `json:"health"`
	// message says why it is not healthy.
	// +optional
	Message string `json:"message,omitempty"`
	// revision of the key space that it has applied. Written along with other news, not by itself.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// dbSize is the size of its database file in bytes. Written along with other news, or once it moved
	// by a tenth and by 1 MiB.
	// +optional
	DBSize int64 `json:"dbSize,omitempty"`
	// dbSizeInUse is the part of dbSize that holds data, in bytes; the rest is freed by defragmentation.
	// +optional
	DBSizeInUse int64 `json:"dbSizeInUse,omitempty"`
	// alarms that it has raised: NOSPACE, CORRUPT.
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`
	// pod that runs it.
	// +optional
	Pod string `json:"pod,omitempty"`
	// since when its role and health are as they are; of an unreachable member, since when passes have not reached it
	// while the others answered.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// strandedSince is since when passes have found that no pod can use its volume any more, such as for the node that it is on, which is gone.
	// +optional
	StrandedSince metav1.Time `json:"strandedSince,omitzero"`
}
