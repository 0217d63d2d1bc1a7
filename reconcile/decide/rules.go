package decide

// Converged is the rule name in the decision if no rule applies.
const Converged = "Converged"

// These rules wait as long as their Jobs may take.
const (
	ruleRestore       = "Restore"
	ruleRecover       = "Recover"
	ruleWaitForBackup = "WaitForBackup"
	ruleLastBackup    = "BackUpBeforeDeletion"
)

// These rules do something else after repeated attempts without success.
const (
	ruleJoinTogether  = "JoinTogether"
	ruleReplaceMember = "ReplaceMember"
	ruleScaleDown     = "ScaleDown"
)

// LockedElsewhere is the rule that overrules every action.
const LockedElsewhere = "LockedElsewhere"

// rule is a named rule. apply returns its decision and whether the rule applies. It must be safe on its own, regardless
// of earlier rules.
type rule struct {
	Rule
	apply func(State) (Decision, bool)
}

// rules lists the rules in evaluation order: guards, then sealing, then the Kubernetes objects that etcd needs, then
// etcd's health, then everything else the spec requests.
var rules = []rule{
	{Rule{"RenewCertificates",
		"Certificates are about to expire, and git declares the cluster no longer, or something that cannot be " +
			"built, or it waits for its last backup: reissue them, touch nothing else."}, renewCertificates},
	{Rule{"Orphaned", "Git declares the cluster no longer: report it, touch nothing."}, orphaned},
	{Rule{"InvalidSpec", "Git asks for something that cannot be built: touch nothing, keep what runs."}, invalidSpec},
	{Rule{"ForeignObjects", "An object or a volume has one of the cluster's names and is not its own: touch nothing."},
		foreignObjects},
	{Rule{"LabelsLost", "A volume, a pod or the lease of the cluster has lost the labels by which it is found: touch " +
		"nothing until they are back."}, labelsLost},
	{Rule{"Suspended", "spec.suspend is set: look, report, touch nothing."}, suspended},
	{Rule{"LostClusterRuns", "Members of a lost cluster run, or would start, beside the one that was made of it. Stop them; " +
		"keep their volumes."}, lostClusterRuns},
	{Rule{"ClusterIDMismatch", "Not all say the same cluster ID, or members that are to found the cluster have formed another one: " +
		"touch nothing."}, clusterIDMismatch},
	{Rule{"MembersMissing", "etcd's list has lost half or more of the voters on record, and nobody has said so: " +
		"touch nothing, keep every volume."}, membersMissing},
	{Rule{"Seal", "A member has started: from now on it starts on its data or not at all."}, seal},
	{Rule{"Terminating", "Kubernetes is deleting objects of the cluster: wait until they are gone."}, terminating},
	{Rule{"CALost", "The CA is gone while members still trust it: a new one would cut them off from each other."},
		caLost},
	{Rule{"CAChanged", "Another CA is in the Secret than the one that members trust: issue nothing from it."},
		caChanged},
	{Rule{"NothingRuns", "Git declares that the cluster does not run, and nothing runs: found nothing."}, nothingRuns},
	{Rule{ruleLastBackup,
		"The cluster is to be deleted, and git wants a backup of before: take it, stop nothing until it is there."},
		backUpBeforeDeletion},
	{Rule{"Stop", "Git declares that the cluster does not run: stop its pods, keep its data; if it is to be deleted, " +
		"delete the rest."}, stop},
	{Rule{"RenamedInGit", "A cluster seems to have got another name or namespace in git: found no second, empty one."},
		renamedInGit},
	{Rule{"Bootstrap", "No sign that the cluster ever formed: make all its objects, founding members and all."},
		bootstrap},
	{Rule{ruleRecover, "The cluster has lost its majority for good, and git orders to make a new one of what a " +
		"member has left, or of a backup: stop all pods, and do it."}, recoverCluster},
	{Rule{"ApplyObjects", "Objects of the cluster are missing or changed, or etcd's list has: put them right."},
		applyObjects},
	{Rule{"FieldsRewritten", "An admission policy or webhook rewrites a field that security or quorum depends on. " +
		"Do not change members."}, fieldsRewritten},
	{Rule{ruleRestore, "The cluster is made from a backup: fill the volume of its first member before it starts."},
		restore},
	{Rule{"RestoreMismatch", "What runs is not what was restored: lead no client to it."}, restoreMismatch},
	{Rule{"CancelDowngrade", "A downgrade is enabled in etcd that git does not declare, or that keeps a new member from " +
		"joining. Cancel it."}, cancelDowngrade},
	{Rule{"RestartBroken", "A pod that does not come up was made from an earlier declaration, " +
		"or can never get its volume: recreate it."}, restartBroken},
	{Rule{"WaitForFormation", "The founding members are starting."}, waitForFormation},
	{Rule{"QuorumLost", "Fewer voters answer than quorum needs: change no member, delete nothing."}, quorumLost},
	{Rule{"MembershipUnknown",
		"etcd gives no member list for a cluster that has formed: change no member, delete nothing."},
		membershipUnknown},
	{Rule{"MembershipMismatch",
		"etcd lists a member that is none of the cluster's replicas: somebody else has added it."}, membershipMismatch},
	{Rule{"DisarmAlarm", "An alarm of a member that is gone still holds: take it back."}, disarmAlarm},
	{Rule{"CleanUp", "A member is gone: delete the volume that it has left."}, cleanUp},
	{Rule{ruleReplaceMember, "A member is lost for good, and the others hold quorum without it: " +
		"remove it, so that another can take its place."}, replaceMember},
	{Rule{ruleScaleDown, "There are more members than declared: remove the one with the highest ordinal."}, scaleDown},
	{Rule{ruleJoinTogether, "A learner has started, and the next can join beside it: add that one, too."},
		joinTogether},
	{Rule{"PromoteLearner", "A learner has caught up: make it a voter."}, promoteLearner},
	{Rule{"DataInDoubt", "Members may hold different data, and no majority has said yet whose are right: " +
		"give up no copy, make no other."}, besideBackup(dataInDoubt)},
	{Rule{"MemberFailing", "The cluster serves; the pod of a member has been failing for long."},
		besideBackup(memberFailing)},
	{Rule{"WaitForMembers", "The cluster serves; a member is not healthy yet, or no longer."}, waitForMembers},
	{Rule{"PrepareUpgrade", "The version that git declares cannot read all that is in the members' logs: have etcd " +
		"write it out first."}, prepareUpgrade},
	{Rule{"Downgrade", "An older minor version is declared. Have etcd prepare its data for it."},
		downgrade},
	{Rule{"StartRollout", "Git declares other pods than run: have new pods made so."}, startRollout},
	{Rule{"RollOneMember", "A pod was made from an earlier declaration: restart it, one at a time, the leader last."},
		rollOneMember},
	{Rule{"ScaleUp", "An ordinal below the declared number has no member: add one there, as a learner."},
		besideBackup(scaleUp)},
	{Rule{"AlarmRaised", "A member raises an alarm, and etcd refuses writes. Only a larger quota is rolled out."}, besideBackup(alarmRaised)},
	{Rule{"BackUp", "Git declares backups, and there is none of this cluster yet, or none from before an upgrade: " +
		"start one."}, backUp},
	{Rule{"VersionRefused", "The version that git declares cannot be reached from the one that runs in one step: " +
		"keep what runs."}, versionRefused},
	{Rule{ruleWaitForBackup,
		"Another version of etcd is to be rolled out, and git wants a backup of before: wait for it."}, waitForBackup},
	{Rule{"WaitForCleanUp", "The volume of a member that is gone is being deleted."}, waitForCleanUp},
	{Rule{"NotActedOn", "Git asks for a change that this version does not make: say so, keep what runs."}, notActedOn},
}
