package decide

// Converged is the rule name in the decision if no rule applies.
const Converged = "Converged"

// The rules that wait as long as their Jobs may run.
const (
	ruleRestore       = "Restore"
	ruleWaitForBackup = "WaitForBackup"
	ruleLastBackup    = "BackUpBeforeDeletion"
	ruleDefragment    = "Defragment"
)

// The rules that take a different action after repeated attempts without success.
const (
	ruleJoinTogether  = "JoinTogether"
	ruleReplaceMember = "ReplaceMember"
	ruleScaleDown     = "ScaleDown"
	ruleReleaseGuest  = "ReleaseGuest"
)

// The rules that write objects that other tools may revert at any time.
const (
	ruleSeal         = "Seal"
	ruleApplyObjects = "ApplyObjects"
)

// InvalidSpec is the name of the rule for a spec that passes do not apply.
const InvalidSpec = "InvalidSpec"

// Recover is the name of the rule that creates a new cluster from the remains of a lost cluster.
const Recover = "Recover"

// LockedElsewhere is the name of the rule that overrides every action.
const LockedElsewhere = "LockedElsewhere"

// rule is a named rule. apply returns its decision and whether the rule applies. The decision must be safe on its own,
// regardless of earlier rules.
type rule struct {
	Rule
	apply func(State) (Decision, bool)
}

// rules lists the rules in evaluation order: guards, then sealing, then the Kubernetes objects that etcd needs, then
// etcd's health, then everything else the spec requests.
var rules = []rule{
	{Rule{"RenewCertificates", "Certificates are about to expire, and the cluster is orphaned, invalid, or waiting " +
		"for its final backup. Reissue them and change nothing else."}, renewCertificates},
	{Rule{"Orphaned", "The source no longer declares the cluster. Report it and leave it unchanged."}, orphaned},
	{Rule{InvalidSpec, "The spec is invalid or not allowed. Leave the running cluster unchanged."}, invalidSpec},
	{Rule{"ForeignObjects", "An object or volume has one of the cluster's names but does not belong to it. Change " +
		"nothing."}, foreignObjects},
	{Rule{"LabelsLost", "A volume, pod or Lease has lost the labels that identify it. Change nothing until they " +
		"are restored."}, labelsLost},
	{Rule{"Suspended", "spec.suspend is set. Report status and change nothing."}, suspended},
	{Rule{"LostClusterRuns", "Members of a lost cluster run, or would start, alongside the cluster created from it. " +
		"Stop them and keep their volumes."}, lostClusterRuns},
	{Rule{"ClusterIDMismatch", "The record, status, etcd and pods disagree on the cluster ID. Change nothing."},
		clusterIDMismatch},
	{Rule{"MembersMissing", "At least half of the recorded voters left etcd's member list unexpectedly, and git " +
		"has not confirmed this. Keep every volume."}, membersMissing},
	{Rule{ruleSeal, "A member has started for the first time. From now on, it starts only with its data."}, seal},
	{Rule{"Terminating", "Kubernetes is deleting objects of the cluster. Wait until they are gone."}, terminating},
	{Rule{"CALost", "The CA is missing or unusable while members still trust it. Do not replace it: members would " +
		"reject each other."}, caLost},
	{Rule{"CAChanged", "The CA in the Secret is not the CA that members trust. Issue nothing from it."}, caChanged},
	{Rule{"NothingRuns", "The cluster should not run, and nothing is running. Do not bootstrap it."}, nothingRuns},
	{Rule{ruleLastBackup, "The cluster is due for deletion, and the spec requires a final backup. Take it before " +
		"stopping anything."}, backUpBeforeDeletion},
	{Rule{"Stop", "The cluster should not run. Stop its pods and keep its data; if the lifecycle is Deleted, " +
		"delete the rest."}, stop},
	{Rule{"RenamedInGit", "The cluster seems to have been renamed or moved in git. Do not create a second, empty " +
		"cluster."}, renamedInGit},
	{Rule{"Adopt", "The replicas will join the members of a running cluster. Check that cluster, and record its " +
		"members as guests."}, adopt},
	{Rule{"Bootstrap", "The cluster has never formed. Create its objects and initial members."}, bootstrap},
	{Rule{Recover, "The cluster has permanently lost its majority, and the spec requests a new cluster from " +
		"one member's data or a backup. Stop all pods and create it."}, recoverCluster},
	{Rule{ruleApplyObjects, "Objects are missing or have drifted, or etcd's member list has changed. Apply them."},
		applyObjects},
	{Rule{"FieldsRewritten", "An admission policy or webhook rewrites a field that security or quorum depends on. " +
		"Do not change members."}, fieldsRewritten},
	{Rule{ruleRestore, "The cluster is being created from a backup. Fill the first member's volume before it " +
		"starts."}, restore},
	{Rule{"RestoreMismatch", "The running data is not the restored data. Keep the client Service closed."},
		restoreMismatch},
	{Rule{"CancelDowngrade", "etcd has a downgrade enabled that git does not declare, or that keeps a new " +
		"member from joining. Cancel it."}, cancelDowngrade},
	{Rule{"RestartBroken", "A pod that cannot start has an outdated spec or can never get its volume. Recreate it."},
		restartBroken},
	{Rule{"WaitForFormation", "The initial members are starting. Wait for them."}, waitForFormation},
	{Rule{"QuorumLost", "Fewer voters respond than quorum requires. Do not change members or delete anything."},
		quorumLost},
	{Rule{"MembershipUnknown", "The cluster has formed, but no quorum returns the same member list. Do not change " +
		"members or delete anything."}, membershipUnknown},
	{Rule{"MembershipMismatch", "etcd lists a member that is not one of the cluster's replicas. It must be " +
		"removed manually."}, membershipMismatch},
	{Rule{"DisarmAlarm", "An alarm of a removed member is still active, or its reason is gone. Disarm " +
		"the alarm."}, disarmAlarm},
	{Rule{"CleanUp", "A removed member left a volume behind. Delete the volume."}, cleanUp},
	{Rule{ruleReplaceMember, "A member is permanently lost, and the others have quorum without it. Remove it so " +
		"that a new member can join."}, besideBackup(replaceMember)},
	{Rule{ruleScaleDown, "There are more members than declared. Remove the member with the highest ordinal."},
		scaleDown},
	{Rule{ruleReleaseGuest, "Git releases a member of the adopted cluster. Remove it from etcd."}, releaseGuest},
	{Rule{ruleJoinTogether, "A learner has started, and a second learner can safely join with it. Add the " +
		"second."}, joinTogether},
	{Rule{"PromoteLearner", "A learner has caught up. Promote it."}, promoteLearner},
	{Rule{"DataInDoubt", "Members may hold different data, and no majority agrees which is right. Do not discard " +
		"or copy any data."}, besideBackup(dataInDoubt)},
	{Rule{"MemberFailing", "The cluster has quorum, but a member's pod keeps failing."}, besideBackup(memberFailing)},
	{Rule{"WaitForMembers", "The cluster has quorum, but a member is not healthy. Wait for it."}, waitForMembers},
	{Rule{"PrepareUpgrade", "Members' logs may hold entries that the declared version cannot read. Have etcd " +
		"write a snapshot first."}, prepareUpgrade},
	{Rule{"Downgrade", "An older minor version is declared. Prepare etcd's data for it."}, downgrade},
	{Rule{"StartRollout", "New pods would not have the declared pod template. Use the declared template for them."},
		startRollout},
	{Rule{"RollOneMember", "A pod has an outdated template. Restart pods one at a time, the leader last."},
		rollOneMember},
	{Rule{"GuestLost", "A member of the adopted cluster left etcd's list, and git does not release it. Do not " +
		"add or remove members."}, besideBackup(guestLost)},
	{Rule{"ScaleUp", "An ordinal below the declared size has no member. Add a learner."}, besideBackup(scaleUp)},
	{Rule{"AlarmRaised", "A member has raised an alarm, and etcd rejects writes. Only a larger quota is rolled out."},
		besideBackup(alarmRaised)},
	{Rule{"BackUp", "Backups are declared, but none has been taken yet, or none since an upgrade was declared. " +
		"Start one."}, backUp},
	{Rule{"VersionRefused", "The declared version cannot be reached in one step. Keep the running version."},
		versionRefused},
	{Rule{ruleWaitForBackup, "An etcd upgrade is due, and the spec requires a backup first. Wait for it."},
		waitForBackup},
	{Rule{"WaitForCleanUp", "A removed member's volume is being deleted. Wait for it."}, waitForCleanUp},
	{Rule{ruleDefragment, "Much of a member's database file is unused, or git requests a defragmentation. Defragment " +
		"one member at a time, the leader last."}, defragment},
	{Rule{"Holding", "The replicas and the members of the adopted cluster form one cluster. Wait until git releases " +
		"the guests."}, holding},
	{Rule{"NotActedOn", "The spec requests a change that this version cannot make. Report it; change nothing."},
		notActedOn},
}
