package decide

import (
	"fmt"
	"regexp"
	"time"
)

// deadlineFor returns the maximum time that a decision may go without progress. A pod that Kubernetes refuses to
// create requires manual action.
func (s State) deadlineFor(d Decision) time.Duration {
	for _, m := range s.Record.Members {
		if r := s.Replica(m.Ordinal); d.Rule != LockedElsewhere && r.Pod == PodAbsent && r.PodRefused != "" {
			return patience
		}
	}
	switch d.Rule { // a Job fails by itself earlier
	case ruleRestore:
		return max(longPatience, s.Declared.Restore.Deadline+patience)
	case Recover:
		return max(longPatience, s.Declared.Recovery.Deadline+patience)
	case ruleWaitForBackup, ruleLastBackup, ruleDefragment:
		return max(longPatience, s.Declared.BackupDeadline+patience)
	case ruleReplaceMember:
		if s.awaitsBackup() {
			return max(longPatience, s.Declared.BackupDeadline+patience)
		}
	}
	return longPatience
}

// remedy returns the manual action for a wait without progress.
func (s State) remedy(d Decision) string {
	switch d.Rule {
	case LockedElsewhere:
		return fmt.Sprintf("check what that pass is doing; if it is no longer running, run kubectl delete lease %s",
			s.Name)
	case "Terminating", "Stop", "WaitForCleanUp":
		return "kubectl get -o yaml shows the finalizers of the remaining objects; the controller that set them " +
			"must remove them" +
			s.remedyForNodes()
	case "CALost", "CAChanged":
		return fmt.Sprintf("run kubectl scale statefulset %s --replicas=0 once none of its claims is being deleted",
			s.Name)
	case ruleRestore:
		return remedyForJob(s.restoreJobName())
	case Recover:
		if s.anyReplica(hasPod) {
			return "kubectl describe shows why the pods still exist" + s.remedyForNodes()
		}
		return remedyForJob(s.recoveryJobName())
	case ruleWaitForBackup:
		return "kubectl describe shows what is delaying that Job and its pods; to upgrade without a backup, remove " +
			"Upgrade from spec.backup.before"
	case ruleLastBackup:
		return "declare lifecycle Running, and find out what prevents the backup; to delete the cluster without a " +
			"backup, remove Deletion from spec.backup.before"
	case "Adopt":
		return "check spec.adopt.endpoints, and whether network policies admit Quorate to them"
	case "ScaleUp":
		ordinal, _ := s.freeOrdinal()
		return s.freeSlot(ordinal)
	case "PromoteLearner":
		return "the leader's log shows why the promotion is rejected; to start again with a new learner, run etcdctl " +
			"member remove with the learner's ID"
	case "ReplaceMember", "ScaleDown", "RollOneMember":
		return s.remedyForLeaving(d)
	case "WaitForMembers":
		return s.remedyForMembers()
	case "CancelDowngrade", "PrepareUpgrade", "Downgrade", "DisarmAlarm", ruleDefragment, "Seal":
		return "the leader's log shows why there is no progress"
	}
	return s.remedyForPods()
}

// remedyForLeaving returns the manual action if the removal or restart of a member makes no progress.
func (s State) remedyForLeaving(d Decision) string {
	if d.Rule == ruleReplaceMember && s.awaitsBackup() {
		return "kubectl describe shows what is delaying backup Jobs and their pods; to replace the member without a " +
			"backup, set spec.backup.suspend"
	}
	if victim, surplus := s.goesDown(); d.Rule == "ScaleDown" && surplus && s.copiesWithout(victim) != "" {
		return "bring the node back under the same name, or shut it down so that a new member replaces the member on it"
	}
	return "the leader's log shows why there is no progress; etcdctl move-leader transfers leadership, and etcdctl " +
		"endpoint status shows which members lag behind"
}

func remedyForJob(name string) string {
	return fmt.Sprintf("kubectl describe shows what is delaying Job %s and its pods; if you delete the Job, it is "+
		"started again", name)
}

// remedyForMembers returns the manual action for the first unhealthy member.
func (s State) remedyForMembers() string {
	for _, m := range s.MembersInOrder() {
		ordinal, _ := s.OrdinalOf(m)
		name, pod := s.nameOf(m), s.Replica(ordinal).Pod
		switch {
		case s.ailment(m) == "":
		case s.Record.Hosts(m.ID) && s.adoptionTakenBack():
			return s.declareAdoptionAgain()
		case s.Record.Hosts(m.ID) && s.Declared.Adoption.releases(m.ID):
			return fmt.Sprintf("bring back %s with the tool that manages it, or run etcdctl member remove %s", name,
				m.ID)
		case s.Record.Hosts(m.ID):
			return fmt.Sprintf("bring back %s with the tool that manages it; if it is lost, add its ID, %s, to "+
				"spec.adopt.release", name, m.ID)
		case m.Answers && s.mustMove(m) != "":
			ordinal := s.lowestFreeOrdinal()
			if _, known := s.Record.removed(ordinal); !known && !s.empty(ordinal) && !s.Replica(ordinal).
				VolumeTerminating {
				return s.volumeInTheWay(ordinal)
			}
		case pod == PodAbsent || pod == PodTerminating:
			return s.remedyForPods()
		case m.Disagrees != "":
			return fmt.Sprintf("restart the member with kubectl delete pod %s; if its member list still differs, run "+
				"etcdctl member remove %s, and a new member will replace it", name, m.ID)
		case m.Learner && pod == PodPending:
			return fmt.Sprintf("kubectl describe pod %s shows what the pod is waiting for, such as a suitable node "+
				"or a volume; to start again with a new learner, run etcdctl member remove %s%s",
				name, m.ID, s.remedyForSpare(ordinal))
		case m.Learner:
			return fmt.Sprintf("kubectl logs %s shows why the learner does not catch up; to start again with a new "+
				"learner, run etcdctl member remove %s", name, m.ID)
		default:
			return s.remedyForPods()
		}
	}
	return s.remedyForPods()
}

// remedyForSpare returns how to proceed without a spare for a member whose volume is being deleted.
func (s State) remedyForSpare(ordinal int) string {
	m, found := s.goingFirst()
	voters := s.Membership.Voters()
	isSpare := ordinal >= s.Declared.Replicas
	othersSuffice := len(voters) >= 3 && Answering(voters) == len(voters) && s.safeWithout(m) > 0
	if !found || !isSpare || !othersSuffice || NeedsAnnouncement(s, m.ID) {
		return ""
	}
	return fmt.Sprintf("; to proceed without a spare, also remove member %s (%s), whose volume is being deleted; the "+
		"other members hold its data", m.ID, s.nameOf(m))
}

// remedyForPods returns the manual action for the first recorded member whose pod does not serve.
func (s State) remedyForPods() string {
	for _, recorded := range s.Record.Members {
		m, _ := s.listedAt(recorded.Ordinal)
		r, name := s.Replica(recorded.Ordinal), s.ReplicaName(recorded.Ordinal)
		switch {
		case m.Answers:
		case r.Pod == PodTerminating:
			return "bring back the node of " + name + s.remedyForNode(recorded.Ordinal)
		case r.Pod == PodAbsent && r.VolumeTerminating:
			return fmt.Sprintf("kubectl describe pvc data-%s shows what is delaying the deletion of the claim: a "+
				"finalizer, or a pod that uses it", name)
		case r.Pod == PodAbsent:
			return fmt.Sprintf("kubectl describe statefulset %s shows what prevents Kubernetes from creating pod "+
				"%s, such as a quota, a policy or a controller", s.Name, name)
		case r.Pod == PodReady:
			return fmt.Sprintf("pod %s is ready, but Quorate cannot reach its etcd. Check --etcd-access, "+
				"network policies and the certificates", name)
		default:
			return fmt.Sprintf("kubectl describe pod %s and kubectl logs %s show what the pod is waiting for", name,
				name)
		}
	}
	return "kubectl describe shows what the cluster's objects are waiting for"
}

// describeTerminatingClaims returns what it means that claims of recorded members are Terminating, or "".
func (s State) describeTerminatingClaims() string {
	var claims []string
	for _, m := range s.Record.Members {
		if r := s.Replica(m.Ordinal); hasVolume(r) && r.VolumeTerminating && !s.volumeLost(m.Ordinal) {
			claims = append(claims, "data-"+s.ReplicaName(m.Ordinal))
		}
	}
	switch len(claims) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; claim %s is Terminating, which cannot be undone: no new pod can use it, and its data "+
			"is deleted once the last pod that uses it is gone", claims[0])
	}
	return fmt.Sprintf("; claims %s are Terminating, which cannot be undone: no new pods can use them, and their "+
		"data is deleted once the last pods that use them are gone", Enumerate(claims))
}

// remedyForNode returns how to force-delete a pod whose node does not confirm that it has ended, or "" if the node may
// still confirm it. Two pods must never run on the same volume.
func (s State) remedyForNode(ordinal int) string {
	r := s.Replica(ordinal)
	if r.Pod != PodTerminating || r.PodGoing.IsZero() || s.Now.Sub(r.PodGoing) < patience {
		return ""
	}
	return fmt.Sprintf("; %s should have terminated at %s, but its node has not confirmed it. Once the machine is "+
		"certainly off, or no longer runs the pod, run kubectl delete pod %s --force --grace-period=0",
		s.ReplicaName(ordinal), r.PodGoing.UTC().Format(time.RFC3339), s.ReplicaName(ordinal))
}

// remedyForJoining returns how to replace a member that has never started, or "".
func (s State) remedyForJoining(ordinal int) string {
	m, listed := s.listedAt(ordinal)
	if !listed || m.Started {
		return ""
	}
	return fmt.Sprintf("; it has never started. To start again with a new member, run etcdctl member remove %s%s", m.ID,
		s.remedyForSpare(ordinal))
}

// remedyForData returns how to discard a failing member's data, or "" if it may be needed.
func (s State) remedyForData(ordinal int) string {
	m, r := s.listed()[ordinal], s.Replica(ordinal)
	crashes := m.Started && r.PodCrashes >= crashLoopThreshold
	canBeSpared := s.Membership.Known && s.sparedBy(m) && s.Membership.Without(m.ID).HasQuorum()
	if !crashes || !hasVolume(r) || r.VolumeTerminating || !canBeSpared {
		return ""
	}
	return fmt.Sprintf("; if its data is the cause, run kubectl delete pvc data-%s, and a new member will replace it",
		s.ReplicaName(ordinal))
}

// remedyForNodes returns remedyForNode for the first pod to which it applies.
func (s State) remedyForNodes() string {
	for _, r := range s.replicasInOrder() {
		if words := s.remedyForNode(r.Ordinal); words != "" {
			return words
		}
	}
	return ""
}

// remedyForChecks returns how to start members that stop because a running peer holds different data, or "". Without
// that peer, the members are compared with each other, and the peer is compared with them when it starts again.
func (s State) remedyForChecks() string {
	var stopped, run []string
	going := ""
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.OrdinalOf(m)
		r := s.Replica(ordinal)
		switch {
		case s.stoppedByCheck(m):
			stopped = append(stopped, s.nameOf(m))
		case ours && (r.Pod == PodStarting || r.Pod == PodReady):
			run = append(run, s.nameOf(m))
			if r.VolumeTerminating || s.volumeLost(ordinal) {
				going = "; save its data first, because its volume is deleted with the pod"
			}
		}
	}
	if len(stopped) < Quorum(len(s.Membership.Voters())) || len(run) != 1 {
		return "" // they would not serve without that peer
	}
	return fmt.Sprintf("; %s would start without %s, whose data differs from theirs. Run kubectl cordon on the node "+
		"of %[2]s, then kubectl delete pod %[2]s, and kubectl uncordon once the other members are serving. If the "+
		"other members agree with each other, %[2]s's data is then discarded%[3]s", Enumerate(stopped), run[0], going)
}

// notAllowedToAsk blocks, because passes cannot fix missing rights.
func (s State) notAllowedToAsk() (Decision, bool) {
	return block("cannot reach etcd from outside the cluster: %s. Grant the account that runs Quorate the verbs get "+
		"and create on pods/portforward, or run Quorate in the cluster. Nothing is changed until then: %s",
		s.Membership.Forbidden, s.describeReplicas())
}

// unwell returns the names of the unhealthy members, and the recorded members that etcd does not list.
func (s State) unwell() []string {
	var names []string
	for _, m := range s.MembersInOrder() {
		if s.ailment(m) != "" {
			names = append(names, s.nameOf(m))
		}
	}
	return append(names, s.unlisted()...)
}

// namespaced matches the kubectl commands in messages that concern objects in a namespace.
var namespaced = regexp.MustCompile(`\bkubectl (annotate|create job|delete|describe|get|label|logs|scale)\b`)

// inNamespace adds the cluster's namespace to the kubectl commands in a message, so that they can be pasted.
func (s State) inNamespace(message string) string {
	if s.Namespace == "" {
		return message
	}
	return namespaced.ReplaceAllString(message, "kubectl -n "+s.Namespace+" $1")
}
