package decide

import "strings"

// Traits are the properties of a kind of action that other packages need to know. An action without traits is refused
// if a run must not restart anything.
type Traits struct {
	// NeverRestart is when an action may be carried out by a run that must not, even indirectly, restart, stop or
	// remove a member or its data.
	NeverRestart Permission
	// DiscardsData is true if the action discards a volume, or the data of a lost cluster.
	DiscardsData bool
	// ChangesEtcd is true if etcd carries out the action.
	ChangesEtcd bool
	// IssuesCertificates is true if the action reissues all certificates that are due.
	IssuesCertificates bool
	// Joins is true for actions that let members join. A second learner is added when the first has started or has
	// become a voter, whichever happens first.
	Joins bool
	// Unplannable is true if an approved plan does not have to contain the action: it records the current state, prepares
	// the next action, or defragments a member. How often that is needed depends on how soon pods start and volumes
	// disappear, on which member leads, and on how much space members use, which a plan cannot predict.
	Unplannable bool
}

// Permission is when an action is allowed.
type Permission int

const (
	// Refused means that the action is never allowed.
	Refused Permission = iota
	// AllowedIfNoneLeaves means that the action is allowed while the cluster should run, if replicas are not removed.
	AllowedIfNoneLeaves
	// AllowedIfRunning means that the action is allowed while the cluster should run.
	AllowedIfRunning
	// Allowed means that the action is always allowed.
	Allowed
)

// TraitsOf returns the traits of an action's kind.
func TraitsOf(a Action) Traits {
	switch a.(type) {
	case Bootstrap:
		return Traits{NeverRestart: AllowedIfRunning, IssuesCertificates: true}
	case Declare:
		return Traits{NeverRestart: AllowedIfRunning}
	case ApplyObjects:
		return Traits{NeverRestart: AllowedIfNoneLeaves, IssuesCertificates: true, Unplannable: true}
	case Seal:
		return Traits{NeverRestart: Allowed, Unplannable: true}
	case RenewCertificates:
		return Traits{NeverRestart: Allowed, IssuesCertificates: true}
	case StartBackup, StartRestore, FinishRestore:
		return Traits{NeverRestart: Allowed}
	case AddLearner, PromoteLearner:
		return Traits{NeverRestart: Allowed, ChangesEtcd: true, Joins: true}
	case DisarmAlarm:
		return Traits{NeverRestart: Allowed, ChangesEtcd: true}
	case Defragment:
		return Traits{NeverRestart: Allowed, ChangesEtcd: true, Unplannable: true}
	case MoveLeader:
		return Traits{ChangesEtcd: true, Unplannable: true}
	case RemoveMember, EnableDowngrade, CancelDowngrade:
		return Traits{ChangesEtcd: true}
	case DeleteVolume, StartRecovery, FinishRecovery:
		return Traits{DiscardsData: true}
	case DiscardBackup, StopRestore, StopRecovery, StopPods, StopReplicas, DeleteObjects, StartRollout, RestartReplica:
		return Traits{}
	}
	return Traits{}
}

// DescribeAction describes an action using member names instead of IDs.
func (s State) DescribeAction(action Action) string {
	kind := KindOf(action)
	switch a := action.(type) {
	case Bootstrap, StartRollout, EnableDowngrade, CancelDowngrade:
		text, _, _ := strings.Cut(action.String(), " hash=") // without the hash of the pod template
		return text
	case Seal:
		return kind + " " + s.namesOfOrdinals(a.Members)
	case StopReplicas:
		return kind + " " + s.namesOfOrdinals(a.Ordinals)
	case AddLearner:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case PromoteLearner:
		return kind + " " + a.Name
	case RemoveMember:
		return kind + " " + a.Name
	case Defragment:
		return kind + " " + a.Name
	case MoveLeader:
		return kind + " " + s.listedName(a.From) + " to " + s.listedName(a.To)
	case DisarmAlarm:
		return kind + " " + string(a.Kind)
	case RestartReplica:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case DeleteVolume:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case StartRecovery:
		return kind + " " + s.ReplicaName(a.Ordinal)
	case ApplyObjects, RenewCertificates, Declare, StopPods, DeleteObjects, StartBackup, DiscardBackup, StartRestore,
		StopRestore, FinishRestore, StopRecovery, FinishRecovery:
	}
	return kind
}

func (s State) namesOfOrdinals(set Ordinals) string {
	var names []string
	for _, ordinal := range set.List() {
		names = append(names, s.ReplicaName(ordinal))
	}
	return Enumerate(names)
}

// listedName returns the name of a member in etcd's list, or its ID if it is not listed.
func (s State) listedName(id ID) string {
	for _, m := range s.Membership.Members {
		if m.ID == id {
			return m.Name
		}
	}
	return id.String()
}
