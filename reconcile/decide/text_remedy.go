package decide

import (
	"fmt"
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
	case ruleRecover:
		return max(longPatience, s.Declared.Recovery.Deadline+patience)
	case ruleWaitForBackup, ruleLastBackup:
		return max(longPatience, s.Declared.BackupDeadline+patience)
	}
	return longPatience
}

// remedy returns the manual action for a wait without progress.
func (s State) remedy(d Decision) string {
	switch d.Rule {
	case LockedElsewhere:
		return fmt.Sprintf("check what that pass is doing; if it is gone, kubectl delete lease %s", s.Name)
	case "Terminating", "Stop", "WaitForCleanUp":
		return "kubectl get -o yaml shows the finalizers of the remaining objects; the controller that set them must remove them" +
			s.remedyForNodes()
	case "CALost", "CAChanged":
		return fmt.Sprintf("kubectl scale statefulset %s --replicas=0, once no claim of it is being deleted", s.Name)
	case ruleRestore:
		return fmt.Sprintf("kubectl describe job %s and its pods show what delays it; if you delete the Job, it is started again",
			s.restoreJobName())
	case ruleRecover:
		if s.anyReplica(hasPod) {
			return "kubectl describe says what keeps the pods" + s.remedyForNodes()
		}
		return fmt.Sprintf("kubectl describe job %s and its pods show what delays it; if you delete the Job, it is started again",
			s.recoveryJobName())
	case ruleWaitForBackup:
		return "kubectl describe shows what keeps that Job and its pods; or take Upgrade out of spec.backup.before"
	case ruleLastBackup:
		return "declare Running, and see what keeps a backup from being taken; " +
			"or take Deletion out of spec.backup.before"
	case "ScaleUp":
		ordinal, _ := s.freeOrdinal()
		return s.freeSlot(ordinal)
	case "PromoteLearner":
		return "the log of the leader says why it refuses; " +
			"to begin again with a new learner, etcdctl member remove its ID"
	case "ReplaceMember", "ScaleDown", "RollOneMember":
		if victim, surplus := s.goesDown(); d.Rule == "ScaleDown" && surplus && s.copiesWithout(victim) != "" {
			return "bring the node back under its name; or switch it off, and a new member takes that place"
		}
		return "the log of the leader shows why it makes no progress; " +
			"etcdctl move-leader makes another member lead, and etcdctl endpoint status shows who lags"
	case "WaitForMembers":
		return s.remedyForMembers()
	case "CancelDowngrade", "PrepareUpgrade", "Downgrade", "DisarmAlarm", "Seal":
		return "the log of etcd's leader shows why it makes no progress"
	}
	return s.remedyForPods()
}

// remedyForMembers returns the manual action for the first unhealthy member.
func (s State) remedyForMembers() string {
	for _, m := range s.MembersInOrder() {
		ordinal, _ := s.OrdinalOf(m)
		name, pod := s.nameOf(m), s.Replica(ordinal).Pod
		switch {
		case s.ailment(m) == "":
		case m.Answers && s.mustMove(m) != "":
			ordinal := s.lowestFreeOrdinal()
			if _, known := s.Record.removed(ordinal); !known && !s.empty(ordinal) && !s.Replica(ordinal).
				VolumeTerminating {
				return s.volumeInTheWay(ordinal)
			}
		case pod == PodAbsent || pod == PodTerminating:
			return s.remedyForPods()
		case m.Disagrees != "":
			return fmt.Sprintf("restart it, by kubectl delete pod %s; if it still believes in another list, etcdctl "+
				"member remove %s, and a new one takes its place", name, m.ID)
		case m.Learner && pod == PodPending:
			return fmt.Sprintf("kubectl describe pod %s says what it waits for: "+
				"a node that it may run on, or a volume; "+
				"to begin again with a new learner, etcdctl member remove %s%s", name, m.ID, s.remedyForSpare(ordinal))
		case m.Learner:
			return fmt.Sprintf("kubectl logs %s says why it does not catch up; to begin again with a new learner, "+
				"etcdctl member remove %s", name, m.ID)
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
	return fmt.Sprintf("; to do without one, remove %s of %s besides, whose volume is being deleted: "+
		"the others hold its data", m.ID, s.nameOf(m))
}

// remedyForPods returns the manual action for the first recorded member whose pod does not serve.
func (s State) remedyForPods() string {
	for _, recorded := range s.Record.Members {
		m := s.listed()[recorded.Ordinal]
		r, name := s.Replica(recorded.Ordinal), s.ReplicaName(recorded.Ordinal)
		switch {
		case m.Answers:
		case r.Pod == PodTerminating:
			return "bring its node back" + s.remedyForNode(recorded.Ordinal)
		case r.Pod == PodAbsent && r.VolumeTerminating:
			return fmt.Sprintf("kubectl describe pvc data-%s shows what keeps the claim from going: "+
				"a finalizer, or a pod that uses it", name)
		case r.Pod == PodAbsent:
			return fmt.Sprintf("kubectl describe statefulset %s says why Kubernetes does not make the pod %s; "+
				"the quota, the policy or the controller has to let it", s.Name, name)
		case r.Pod == PodReady:
			return fmt.Sprintf("the pod %s is ready, and etcd in it is not reached from here: see --etcd-access, "+
				"network policies and the certificates", name)
		default:
			return fmt.Sprintf("kubectl describe pod %s and kubectl logs %s say what it waits for", name, name)
		}
	}
	return "kubectl describe says what the objects of the cluster wait for"
}

// remedyForNode returns how to force-delete a pod whose node does not confirm that it has ended, or "" if the node may
// still confirm it. Two pods must never run on one volume.
func (s State) remedyForNode(ordinal int) string {
	r := s.Replica(ordinal)
	if r.Pod != PodTerminating || r.PodGoing.IsZero() || s.Now.Sub(r.PodGoing) < patience {
		return ""
	}
	return fmt.Sprintf("; %s should have ended at %s, and its node does not say so: once it is certain "+
		"that the machine is off, or runs it no more, kubectl delete pod %s --force --grace-period=0",
		s.ReplicaName(ordinal), r.PodGoing.UTC().Format(time.RFC3339), s.ReplicaName(ordinal))
}

// remedyForJoining returns how to restart with a new member instead of one that has never started, or "".
func (s State) remedyForJoining(ordinal int) string {
	m, listed := s.listed()[ordinal]
	if !listed || m.Started {
		return ""
	}
	return fmt.Sprintf("; it has never started: to begin again with a new one, etcdctl member remove %s%s", m.ID,
		s.remedyForSpare(ordinal))
}

// remedyForData returns how to discard a failing member's data, or "" if it may be needed.
func (s State) remedyForData(ordinal int) string {
	m, r := s.listed()[ordinal], s.Replica(ordinal)
	crashes := m.Started && r.PodCrashes >= crashLoopThreshold
	canBeSpared := s.Membership.Known && s.sparedBy(m) && s.Membership.without(m.ID).HasQuorum()
	if !crashes || !hasVolume(r) || r.VolumeTerminating || !canBeSpared {
		return ""
	}
	return fmt.Sprintf("; if its data are the reason, kubectl delete pvc data-%s, and a new member takes its place",
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
// that peer, they are compared with each other, and the peer is compared with them once it starts again.
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
				going = "; save its data before that: its volume goes with the pod"
			}
		}
	}
	if len(stopped) < Quorum(len(s.Membership.Voters())) || len(run) != 1 {
		return "" // they would not serve without it
	}
	return fmt.Sprintf("; %s would start without %s, whose data differ from theirs: "+
		"kubectl cordon its node, kubectl delete pod %s, and kubectl uncordon the node once the others serve; "+
		"where they agree, its data are given up then%s", Enumerate(stopped), run[0], run[0], going)
}

// notAllowedToAsk blocks, because no pass can fix missing rights.
func (s State) notAllowedToAsk() (Decision, bool) {
	return block("etcd cannot be asked from outside of the cluster: %s; "+
		"grant the account that runs Quorate the verbs get and create on pods/portforward, or run it in the cluster; "+
		"nothing is changed until then: %s", s.Membership.Forbidden, s.describeReplicas())
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
