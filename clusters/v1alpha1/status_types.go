package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The condition types. Reasons are rule names, unless a read failed before the rules were evaluated.
const (
	// ConditionReady is true when every declared member is a healthy voter, and the cluster is supposed to serve
	// clients and is not blocked.
	ConditionReady = "Ready"
	// ConditionReconciling is true while passes make changes or wait.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when manual action is required.
	ConditionStalled = "Stalled"
	// ConditionSourceReady is false while git cannot be read. The last applied declaration then remains in effect.
	ConditionSourceReady = "SourceReady"
	// ConditionRemovalHeld is true while git no longer declares the cluster and the removal is held, because so many
	// clusters were removed that it may be an accident, and the removal has not been confirmed. The last applied
	// declaration then remains in effect. The message names the first revision without the cluster.
	ConditionRemovalHeld = "RemovalHeld"
	// ConditionOrphaned is true while git no longer declares the cluster. The message names the first revision without
	// the cluster.
	ConditionOrphaned = "Orphaned"
	// ConditionCertificatesValid is false when a certificate has expired or is about to expire. The message names the
	// certificate that expires first, and when.
	ConditionCertificatesValid = "CertificatesValid"
)

// The condition types for rewritten fields and backups.
const (
	// ConditionFieldsRewritten is true while an admission policy or webhook changes the values of fields that Quorate
	// applies. The message names the fields.
	ConditionFieldsRewritten = "FieldsRewritten"
	// ConditionDatabaseNearQuota is true while a member's database uses at least 80 percent of the quota (reason
	// NearQuota) or at least 95 percent (reason AlmostFull). At 100 percent, etcd rejects writes.
	ConditionDatabaseNearQuota = "DatabaseNearQuota"
	// ConditionBackupStale is true when the newest scheduled backup has not succeeded within its deadline. The message
	// contains the age of the newest backup and the reason why the last backup failed.
	ConditionBackupStale = "BackupStale"
	// ConditionBackupUnverified is true when the newest successful backup was not read back, although
	// spec.backup.verify requires it.
	ConditionBackupUnverified = "BackupUnverified"
)

// EtcdClusterStatus is the state of a cluster as observed by the last pass.
type EtcdClusterStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reconciling, Stalled and SourceReady. CertificatesValid is added if TLS is enabled, and
	// RemovalHeld or Orphaned once git no longer declares the cluster. FieldsRewritten, DatabaseNearQuota, BackupStale
	// and BackupUnverified report further problems.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// declaredRevision is the git revision that declares this cluster, as branch@sha1:commit.
	// +optional
	DeclaredRevision string `json:"declaredRevision,omitempty"`
	// declaredRevisionTime is the time of the commit in declaredRevision, as recorded in the commit. It is absent if it
	// is unknown, for example for a directory that is not a repository. It is written only together with other changes.
	// +optional
	DeclaredRevisionTime *metav1.Time `json:"declaredRevisionTime,omitempty"`
	// declaredSource is the source that declares this cluster, such as https://git.example.com/fleet.git,path=clusters.
	// +optional
	DeclaredSource string `json:"declaredSource,omitempty"`
	// sourceRevision is the revision at which declaredSource was last read and accepted, whether or not it still
	// declares this cluster. Later revisions must descend from it.
	// +optional
	SourceRevision string `json:"sourceRevision,omitempty"`
	// rule is the rule that applied in the last pass.
	// +optional
	Rule string `json:"rule,omitempty"`
	// clusterID is etcd's cluster ID in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// leader is the name of the Raft leader.
	// +optional
	Leader string `json:"leader,omitempty"`
	// version is the oldest etcd version among the members, as of the last time they responded.
	// +optional
	Version string `json:"version,omitempty"`
	// voters is the number of healthy voters and the number of declared replicas, such as 3/3.
	// +optional
	Voters string `json:"voters,omitempty"`
	// replicas is the number of members that etcd lists.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of healthy voters.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// selector selects the members' pods.
	// +optional
	Selector string `json:"selector,omitempty"`
	// endpoints lists the client URLs, one per member. It is empty until all initial members have been sealed and any
	// restored data has been checked.
	// +optional
	// +listType=atomic
	Endpoints []string `json:"endpoints,omitempty"`
	// clientSecretName is the name of the Secret that contains ca.crt, tls.crt and tls.key for clients.
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`
	// members is etcd's member list.
	// +optional
	// +listType=atomic
	Members []MemberStatus `json:"members,omitempty"`
	// defragmentation is the most recent request to defragment all members once.
	// +optional
	Defragmentation *DefragmentationStatus `json:"defragmentation,omitempty"`
	// corruptionCheck is the most recent comparison of the voters' data.
	// +optional
	CorruptionCheck *CorruptionCheckStatus `json:"corruptionCheck,omitempty"`
	// backup reports the newest backups and drills.
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`
	// restoredFrom is the backup from which the cluster was created.
	// +optional
	RestoredFrom string `json:"restoredFrom,omitempty"`
	// voidRecovery is the digest of a spec.recovery that had no effect because the cluster had quorum. It will not take
	// effect later either. If the majority is lost later, remove spec.recovery from git, run a pass, and declare it
	// again.
	// +optional
	VoidRecovery string `json:"voidRecovery,omitempty"`
	// waiting lists the waits and unsuccessful attempts of passes since a pass last changed anything. If a wait takes
	// too long, manual action is required, as reported by the condition Stalled.
	// +optional
	// +listType=atomic
	Waiting []WaitStatus `json:"waiting,omitempty"`
	// repeated lists the actions that passes have repeated because a later pass found them reverted. After three
	// repetitions, other actions that are safe without the repeated action take precedence. The list also counts the
	// changes to objects that took precedence over the repair of a member ("preempted"). After five such changes, the
	// repair takes precedence.
	// +optional
	// +listType=atomic
	Repeated []RepeatedAction `json:"repeated,omitempty"`
	// rewritten lists the fields that an admission policy or webhook sets to a value other than the value that Quorate
	// applies. They are applied again when either value changes.
	// +optional
	// +listType=atomic
	Rewritten []RewrittenField `json:"rewritten,omitempty"`
}

// RepeatedAction is an action that passes have carried out repeatedly, or a repair over which other actions took
// precedence.
type RepeatedAction struct {
	// rule is the rule that requested the action.
	// +required
	Rule string `json:"rule"`
	// what identifies the action: its kind, and its target or a digest of the target.
	// +required
	What string `json:"what"`
	// times is the number of times the action was carried out.
	// +required
	Times int32 `json:"times"`
	// last is the time at which the action was last carried out.
	// +required
	Last metav1.Time `json:"last"`
}

// RewrittenField is a field that the API server returned with a value other than the applied value.
type RewrittenField struct {
	// object is the kind and name of the object.
	// +required
	Object string `json:"object"`
	// field is the path of the field in the object.
	// +required
	Field string `json:"field"`
	// by is the field manager that owns the field, if it is not Quorate.
	// +optional
	By string `json:"by,omitempty"`
	// digest is the digest of the applied value and the returned value.
	// +required
	Digest string `json:"digest"`
}

// DefragmentationStatus is a request to defragment all members once.
type DefragmentationStatus struct {
	// request is the value of the annotation etcd.quorate.dev/defragment.
	// +required
	Request string `json:"request"`
	// since is the time at which a pass first found the request.
	// +required
	Since metav1.Time `json:"since"`
	// completed is true once the defragmentation of every member has been attempted, even if an attempt failed.
	// +optional
	Completed bool `json:"completed,omitempty"`
}

// CorruptionCheckStatus is the most recent comparison of the voters' data.
type CorruptionCheckStatus struct {
	// at is when the data was last compared, or when the comparison failed.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// revision is the revision at which the data was compared. It is absent if the comparison failed.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// failure is the reason why the comparison failed.
	// +optional
	Failure string `json:"failure,omitempty"`
	// differsSince is when a pass first found that voters hold different data. It is absent once all voters are known
	// to hold the same data.
	// +optional
	DiffersSince *metav1.Time `json:"differsSince,omitempty"`
}

// BackupStatus reports the backups that passes have observed. The store may contain other backups.
type BackupStatus struct {
	// last is the newest successful backup.
	// +optional
	Last *BackupResult `json:"last,omitempty"`
	// beforeDeletion is the backup on which the deletion of the cluster relies, if backup.before contains Deletion. Its
	// generation is the generation that declared the deletion.
	// +optional
	BeforeDeletion *BackupResult `json:"beforeDeletion,omitempty"`
	// failed is the newest failed backup, if it is newer than last.
	// +optional
	Failed *BackupFailure `json:"failed,omitempty"`
	// drill is the newest successful drill.
	// +optional
	Drill *DrillResult `json:"drill,omitempty"`
	// drillFailed is the newest failed drill, if it is newer than drill.
	// +optional
	DrillFailed *BackupFailure `json:"drillFailed,omitempty"`
}

// DrillResult is the result of a successful drill: a backup was restored, and etcd started with the restored data.
// Unless uncompared is set, the restored data was the same as the backed-up data.
type DrillResult struct {
	// job is the name of the Job that ran the drill.
	// +required
	Job string `json:"job"`
	// slot is the nominal time of the restored backup.
	// +required
	Slot metav1.Time `json:"slot"`
	// clusterID is the ID of the cluster that was backed up, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// etcdVersion is the version of the etcd that was started.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`
	// finishedAt is the time at which the drill finished.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
	// seconds is the duration of the restore in seconds, rounded up: fetching and checking the backup, creating a data
	// directory from it, and starting etcd until it responded.
	// +optional
	Seconds int64 `json:"seconds,omitempty"`
	// bytes is the size of the snapshot in bytes, before compression.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// uncompared is the reason why the data could not be compared. It is empty if the data was compared and is the
	// same.
	// +optional
	Uncompared string `json:"uncompared,omitempty"`
}

// BackupResult is a stored backup.
type BackupResult struct {
	// job is the name of the Job that took the backup.
	// +required
	Job string `json:"job"`
	// generation is the generation of this resource for which a pass started the backup. It is 0 if the backup was not
	// started by a pass.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// slot is the nominal time of the backup, which is also its name in the store.
	// +required
	Slot metav1.Time `json:"slot"`
	// to is the store that contains the backup.
	// +optional
	To string `json:"to,omitempty"`
	// startedAt is the time at which the backup started.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// finishedAt is the time at which the backup finished.
	// +required
	FinishedAt metav1.Time `json:"finishedAt"`
	// clusterID is the ID of the cluster that was backed up, in hexadecimal.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// revision is the etcd revision that the backup contains.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// bytes is the size of the snapshot in bytes, before compression.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// verified reports whether the backup was read back from the store and is unchanged.
	// +optional
	Verified bool `json:"verified,omitempty"`
}

// BackupFailure is a backup or drill that failed.
type BackupFailure struct {
	// job is the name of the Job that failed.
	// +required
	Job string `json:"job"`
	// at is the time at which the Job failed, after all retries.
	// +required
	At metav1.Time `json:"at"`
	// message is the reason why the Job failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// WaitStatus is a wait that lasts for one or more passes.
type WaitStatus struct {
	// rule is the rule that waits.
	// +required
	Rule string `json:"rule"`
	// for names what the rule is waiting for, such as the unhealthy members.
	// +optional
	For string `json:"for,omitempty"`
	// since is the time at which the wait started.
	// +required
	Since metav1.Time `json:"since"`
	// seen is the time at which the wait was last recorded. It is recorded every ten minutes. A wait that has not been
	// observed for half an hour no longer counts.
	// +required
	Seen metav1.Time `json:"seen"`
}

// MemberRole is the role of a member in Raft.
//
// +kubebuilder:validation:Enum=Leader;Voter;Learner
type MemberRole string

// The member roles.
const (
	RoleLeader  MemberRole = "Leader"
	RoleVoter   MemberRole = "Voter"
	RoleLearner MemberRole = "Learner"
)

// MemberHealth is the health of a member in the last pass.
//
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unreachable
type MemberHealth string

// The health values. Unhealthy: the member responds and reports a problem. Unreachable: the member is not responding.
const (
	MemberHealthy     MemberHealth = "Healthy"
	MemberUnhealthy   MemberHealth = "Unhealthy"
	MemberUnreachable MemberHealth = "Unreachable"
)

// MemberStatus is an entry in etcd's member list, with the state that the member reports.
type MemberStatus struct {
	// name is the name of the member and of its pod.
	// +optional
	Name string `json:"name,omitempty"`
	// id is the ID of the member, in hexadecimal.
	// +required
	ID string `json:"id"`
	// role is the role of the member in Raft.
	// +required
	Role MemberRole `json:"role"`
	// version is the etcd version that the member runs.
	// +optional
	Version string `json:"version,omitempty"`
	// health is the health of the member in the last pass.
	// +required
	Health MemberHealth `json:"health"`
	// message is the reason why the member is not healthy.
	// +optional
	Message string `json:"message,omitempty"`
	// revision is the etcd revision that the member has applied. It is written only together with other changes, and is
	// kept while the member is not responding.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// dbSize is the size of the member's database file in bytes. It is written together with other changes, or when it
	// has changed by a tenth and by 1 MiB.
	// +optional
	DBSize int64 `json:"dbSize,omitempty"`
	// dbSizeInUse is the part of dbSize that holds data, in bytes. Defragmentation frees the rest.
	// +optional
	DBSizeInUse int64 `json:"dbSizeInUse,omitempty"`
	// defragmentedAt is the time of the pass that last defragmented the member, or tried to.
	// +optional
	DefragmentedAt metav1.Time `json:"defragmentedAt,omitzero"`
	// defragmentationFailure is the reason why that defragmentation failed.
	// +optional
	DefragmentationFailure string `json:"defragmentationFailure,omitempty"`
	// alarms lists the alarms that the member has raised: NOSPACE, CORRUPT.
	// +optional
	// +listType=atomic
	Alarms []string `json:"alarms,omitempty"`
	// pod is the pod that runs the member.
	// +optional
	Pod string `json:"pod,omitempty"`
	// since is the time at which the role or health last changed. For an unreachable member, it is the time of the
	// first pass that did not reach the member while others responded.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// strandedSince is the time at which passes first found that no pod can use the member's volume again, for example
	// because its node is gone.
	// +optional
	StrandedSince metav1.Time `json:"strandedSince,omitzero"`
}
