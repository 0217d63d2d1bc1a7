package decide

// Converged is the name of what Decide says when no rule speaks.
const Converged = "Converged"

// lockedElsewhere overrules every action.
const lockedElsewhere = "LockedElsewhere"

// rule is a named rule. apply returns its decision and whether it speaks; it must be safe by itself,
// whatever the rules before it have let through.
type rule struct {
	Rule
	apply func(State) (Decision, bool)
}

// rules in the order in which they are asked. Guards come first; then what keeps a member from ever starting without its
// data; then what Kubernetes is told, since etcd needs it; then the health of etcd, and last what else git wants.
var rules = []rule{
	{Rule{"InvalidSpec", "Git asks for something that cannot be built: touch nothing, keep what runs."}, invalidSpec},
	{Rule{"ForeignObjects", "An object or a volume bears one of the cluster's names and is not its own: touch nothing."}, foreignObjects},
	{Rule{"Suspended", "spec.suspend is set: look, report, touch nothing."}, suspended},
	{Rule{"ClusterIDMismatch", "Not all say the same cluster ID: touch nothing."}, clusterIDMismatch},
	{Rule{"Seal", "A member has started: from now on it starts on its data or not at all."}, seal},
	{Rule{"Terminating", "Kubernetes is deleting objects of the cluster: wait until they are gone."}, terminating},
	{Rule{"AuthorityLost", "The certificate authority is gone while members still trust it: a new one would cut them off from each other."}, authorityLost},
	{Rule{"NothingRuns", "Git declares that the cluster does not run, and nothing runs: found nothing."}, nothingRuns},
	{Rule{"Bootstrap", "No sign that the cluster ever formed: make all its objects, founding members and all."}, bootstrap},
	{Rule{"ApplyObjects", "Objects of the cluster are missing or changed: put them right."}, applyObjects},
	{Rule{"WaitForFormation", "The founding members are starting."}, waitForFormation},
	{Rule{"QuorumLost", "Fewer voters answer than quorum needs: change no member, delete nothing."}, quorumLost},
	{Rule{"MembershipUnknown", "etcd gives no member list for a cluster that has formed: change no member, delete nothing."}, membershipUnknown},
	{Rule{"ReplaceMember", "A member has lost its volume: it stays down, the others serve."}, replaceMember},
	{Rule{"MembershipMismatch", "etcd's member list and the record differ: somebody else has changed the members."}, membershipMismatch},
	{Rule{"AlarmRaised", "A member raises an alarm: etcd refuses writes, or distrusts its data."}, alarmRaised},
	{Rule{"MemberFailing", "The cluster serves; the pod of a member has been failing for long."}, memberFailing},
	{Rule{"WaitForMembers", "The cluster serves; a member is not healthy yet, or no longer."}, waitForMembers},
	{Rule{"NotActedOn", "Git asks for a change that this version does not make: say so, keep what runs."}, notActedOn},
}
