package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// unknownChangesNothing checks that, while the member list is unknown, only actions that do not need the list are
// carried out.
func unknownChangesNothing(s decide.State, d decide.Decision) string {
	if s.Membership.Known {
		return ""
	}
	switch a := d.Action.(type) {
	case nil, decide.Bootstrap, decide.ApplyObjects, decide.RenewCertificates, decide.Declare, decide.StartRollout,
		decide.StopPods, decide.DeleteObjects, decide.StartRestore, decide.StopRestore, decide.FinishRestore,
		decide.StartRecovery, decide.StopRecovery, decide.FinishRecovery, decide.StopReplicas:
		return ""
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		if r.Pod == decide.PodFailing || r.Pod == decide.PodPending {
			return "" // the pod is not running
		}
	case decide.DeleteVolume:
		if wholeClusterGoes(s) {
			return ""
		}
	}
	return fmt.Sprintf("%s, although the membership is unknown", d.Action)
}

// wholeClusterGoes reports whether git declares the cluster deleted with its volumes, and its pods neither exist nor
// can start.
func wholeClusterGoes(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return false
		}
	}
	return s.Declared.Lifecycle == decide.Deleted && s.Declared.Retention == decide.Delete &&
		s.Objects.RunsReplicas == 0 && len(s.Membership.Members) == 0
}

// quorumSurvives checks that adding a vote, or removing a vote permanently or temporarily, leaves a quorum of
// responding voters.
func quorumSurvives(s decide.State, d decide.Decision) string {
	after := map[decide.ID]bool{} // the voters after the action, and whether they respond
	for _, m := range voters(s) {
		after[m.ID] = m.Answers
	}
	switch a := d.Action.(type) {
	case nil, decide.Bootstrap, decide.Seal, decide.ApplyObjects, decide.RenewCertificates, decide.Declare,
		decide.StartRollout, decide.StartBackup, decide.DiscardBackup, decide.StartRestore, decide.StopRestore,
		decide.FinishRestore, decide.StartRecovery, decide.StopRecovery, decide.FinishRecovery,
		decide.EnableDowngrade, decide.CancelDowngrade, decide.DisarmAlarm, decide.Defragment, decide.AddLearner,
		decide.MoveLeader:
		return "" // votes do not change, and pods are not restarted
	case decide.StopPods, decide.StopReplicas, decide.DeleteObjects, decide.DeleteVolume:
		return "" // other invariants check stopped clusters and unused volumes
	case decide.PromoteLearner:
		m, _ := memberByID(s, a.ID)
		after[a.ID] = m.Answers
	case decide.RemoveMember:
		delete(after, a.ID)
	case decide.RestartReplica:
		m, _ := memberNamed(s, a.Ordinal)
		// Clusters of one or two members cannot be restarted without losing quorum.
		alone := len(after) < 3 && s.Declared.Replicas < 3 && allAnswer(voters(s))
		if !m.Answers || m.Learner || alone {
			return ""
		}
		after[m.ID] = false
	default:
		return fmt.Sprintf("%s is not known to preserve quorum", d.Action)
	}
	if !isQuorum(after) {
		return fmt.Sprintf("%s loses quorum", d.Action)
	}
	return ""
}

// isQuorum reports whether more than half of the voters respond.
func isQuorum(voters map[decide.ID]bool) bool {
	answer := 0
	for _, answers := range voters {
		if answers {
			answer++
		}
	}
	return 2*answer > len(voters)
}

func leadershipIsTransferredFirst(s decide.State, d decide.Decision) string {
	var member decide.Member
	switch a := d.Action.(type) {
	case decide.RemoveMember:
		member, _ = memberByID(s, a.ID)
	case decide.RestartReplica:
		member, _ = memberNamed(s, a.Ordinal)
	case decide.MoveLeader:
		from, _ := memberByID(s, a.From)
		to, _ := memberByID(s, a.To)
		if !from.Leader || to.Leader || to.Learner || !to.Answers {
			return fmt.Sprintf("%s is not possible", d.Action)
		}
	}
	if member.Leader && len(voters(s)) > 1 {
		return fmt.Sprintf("%s, although the member is the leader", d.Action)
	}
	return ""
}

func volumeOutlivesMember(s decide.State, d decide.Decision) string {
	a, deletes := d.Action.(decide.DeleteVolume)
	if !deletes || wholeClusterGoes(s) {
		return ""
	}
	for _, m := range s.Membership.Members {
		ordinal, ours := slotOf(s, m)
		switch {
		case ours && ordinal == a.Ordinal:
			return "deletes the volume of a member that etcd lists"
		case m.Name == "" && !ours:
			return "deletes a volume while the slot of a member is unknown"
		}
	}
	return ""
}

func emptySlot(s decide.State, d decide.Decision) string {
	a, adds := d.Action.(decide.AddLearner)
	r := replicaAt(s, a.Ordinal)
	goes := r.VolumeTerminating && (r.Pod == decide.PodAbsent || r.Pod == decide.PodTerminating)
	if !adds || r.VolumeUID == "" || goes {
		return ""
	}
	for _, gone := range s.Record.Removed {
		if gone.Ordinal == a.Ordinal && gone.VolumeUID != "" && gone.VolumeUID != r.VolumeUID && !r.VolumeTerminating {
			return "" // the volume was created later, for a pod that has no configuration to start with
		}
	}
	return "adds a member to a slot that has a volume"
}

func deadGoFirst(s decide.State, d decide.Decision) string {
	if _, adds := d.Action.(decide.AddLearner); !adds {
		return ""
	}
	for _, m := range s.Membership.Members {
		if !m.Answers && !running(s, m) {
			return "adds a member while another does not respond"
		}
	}
	return ""
}

func lowestInHighestOut(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.AddLearner:
		for ordinal := range a.Ordinal {
			if _, listed := memberAt(s, ordinal); !listed {
				return fmt.Sprintf("adds ordinal %d while %d is free", a.Ordinal, ordinal)
			}
		}
		if a.Ordinal >= wanted(s) && !anyVolumeGoes(s) {
			return fmt.Sprintf("adds ordinal %d, but only %d members are declared", a.Ordinal, s.Declared.Replicas)
		}
	case decide.RemoveMember:
		member, _ := memberByID(s, a.ID)
		ordinal, ours := slotOf(s, member)
		needless := member.Learner && ordinal >= wanted(s)
		for _, m := range s.Membership.Members {
			doomed := outvoted(s, member) || member.Learner && doubted(s) || doomedVolume(s, member)
			if n, _ := slotOf(s, m); ours && member.Answers && !needless && !doomed && n > ordinal {
				return fmt.Sprintf("removes %s, although %s has a higher ordinal", member.Name, m.Name)
			}
		}
	}
	return ""
}

// anyVolumeGoes reports whether a listed member's volume is being deleted, so that one more member than declared may
// join before the deletion.
func anyVolumeGoes(s decide.State) bool {
	for _, r := range s.Replicas {
		if _, listed := memberAt(s, r.Ordinal); listed && r.VolumeTerminating && r.VolumeUID != "" {
			return true
		}
	}
	for _, m := range s.Membership.Members {
		if m.Answers && doomedVolume(s, m) {
			return true
		}
	}
	return false
}

func hitsWhatWasSeen(s decide.State, d decide.Decision) string {
	seen := true
	switch a := d.Action.(type) {
	case decide.RestartReplica:
		seen = a.PodUID != "" && a.PodUID == replicaAt(s, a.Ordinal).PodUID
	case decide.DeleteVolume:
		seen = a.VolumeUID != "" && a.VolumeUID == replicaAt(s, a.Ordinal).VolumeUID
	case decide.RemoveMember:
		m, listed := memberByID(s, a.ID)
		named := m.Name == a.Name || m.Name == "" || isGuest(s, m) && "guest "+m.Name == a.Name
		seen = listed && named && lossIsSeen(s, a, m)
	case decide.PromoteLearner:
		m, _ := memberByID(s, a.ID)
		seen = m.Name == a.Name && m.Learner
	case decide.Defragment:
		m, listed := memberByID(s, a.ID)
		seen = listed && m.Name == a.Name
	case decide.DisarmAlarm:
		seen = false
		for _, alarm := range s.Membership.StaleAlarms {
			seen = seen || alarm == decide.Alarm(a)
		}
		for _, m := range s.Membership.Members {
			for _, kind := range m.Alarms {
				seen = seen || a == decide.DisarmAlarm{ID: m.ID, Kind: kind}
			}
		}
	case decide.Seal:
		seen = a.ClusterID != 0 && a.ClusterID == s.Membership.ClusterID
	}
	if !seen {
		return fmt.Sprintf("%s does not match the observed state", d.Action)
	}
	return ""
}
