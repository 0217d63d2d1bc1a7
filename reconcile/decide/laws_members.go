package decide

import "fmt"

func recordOnlyTightens(s State, d Decision) string {
	switch a := d.Action.(type) {
	case Found:
		return loosened(s, StandingRecord(s, "fresh"), true)
	case ApplyObjects:
		return loosened(s, StandingRecord(s, "fresh"), false)
	case Seal:
		return loosened(s, SealedRecord(s, a, "fresh"), false)
	}
	return ""
}

// loosened says what a record takes back of what the one in s says, or says out of nothing.
func loosened(s State, after Record, founds bool) string {
	switch before := s.Record; {
	case after.Token == "" || len(after.Members) == 0:
		return "leaves no record"
	case before.Token != "" && after.Token != before.Token:
		return "changes the token"
	case before.ClusterID != 0 && after.ClusterID != before.ClusterID:
		return "changes the cluster ID"
	}
	for _, m := range s.Record.Members {
		if what := loosens(s, m, after); what != "" {
			return fmt.Sprintf("%s: %s", s.ReplicaName(m.Ordinal), what)
		}
	}
	for _, m := range after.Members {
		if len(s.Record.Members) == 0 && (m.Mode == Founding) != founds {
			return fmt.Sprintf("%s becomes %s out of nothing", s.ReplicaName(m.Ordinal), m.Mode)
		}
	}
	return ""
}

// loosens says what a record takes back of what the one in s says of a member.
func loosens(s State, before RecordedMember, after Record) string {
	m, found := after.Member(before.Ordinal)
	listed, _ := s.Membership.byName(s.ReplicaName(before.Ordinal))
	rolledBack := s.Record.ClusterID == 0 && s.ReportedClusterID != 0
	switch {
	case !found:
		return "is dropped"
	case before.Mode == Sealed && m.Mode != Sealed:
		return "is unsealed"
	case before.Mode != Sealed && m.Mode == Sealed && !(s.Membership.Known && listed.Started) && !rolledBack:
		return "is sealed before it started"
	}
	return ""
}

func unknownChangesNothing(s State, d Decision) string {
	if s.Membership.Known {
		return ""
	}
	switch d.Action.(type) {
	case Seal, AddLearner, PromoteLearner, RemoveMember, MoveLeader, RestartReplica, DeleteVolume:
		return fmt.Sprintf("%s although the membership is not known", d.Action)
	}
	return ""
}

func quorumSurvives(s State, d Decision) string {
	var after Membership
	switch a := d.Action.(type) {
	case RemoveMember:
		after = s.Membership.without(a.ID)
	case RestartReplica:
		member, _ := s.Membership.byName(s.ReplicaName(a.Ordinal))
		after = s.Membership.whileDown(member.ID)
	default:
		return ""
	}
	if !after.HasQuorum() {
		return fmt.Sprintf("%s leaves no quorum", d.Action)
	}
	return ""
}

func leaderHandsOverFirst(s State, d Decision) string {
	var member Member
	switch a := d.Action.(type) {
	case RemoveMember:
		member, _ = s.Membership.byID(a.ID)
	case RestartReplica:
		member, _ = s.Membership.byName(s.ReplicaName(a.Ordinal))
	case MoveLeader:
		from, _ := s.Membership.byID(a.From)
		to, _ := s.Membership.byID(a.To)
		if !from.Leader || to.Leader || to.Learner || !to.Answers {
			return fmt.Sprintf("%s cannot work", d.Action)
		}
	}
	if member.Leader && len(s.Membership.Voters()) > 1 {
		return fmt.Sprintf("%s takes the leader away", d.Action)
	}
	return ""
}

func oneLearner(s State, d Decision) string {
	if _, adds := d.Action.(AddLearner); adds && len(s.Membership.Voters()) != len(s.Membership.Members) {
		return "adds a learner beside another"
	}
	return ""
}

func volumeOutlivesMember(s State, d Decision) string {
	a, deletes := d.Action.(DeleteVolume)
	if !deletes {
		return ""
	}
	if _, listed := s.Membership.byName(s.ReplicaName(a.Ordinal)); listed {
		return "deletes the volume of a member that etcd lists"
	}
	for _, m := range s.Membership.Members {
		if m.Name == "" {
			return "deletes a volume while a member has no name yet"
		}
	}
	return ""
}

func deadGoFirst(s State, d Decision) string {
	if _, adds := d.Action.(AddLearner); !adds {
		return ""
	}
	if Answering(s.Membership.Members) < len(s.Membership.Members) {
		return "adds a member while another is silent"
	}
	return ""
}

func lowestInHighestOut(s State, d Decision) string {
	switch a := d.Action.(type) {
	case AddLearner:
		for ordinal := range a.Ordinal {
			if _, listed := s.Membership.byName(s.ReplicaName(ordinal)); !listed {
				return fmt.Sprintf("adds %d while %d is free", a.Ordinal, ordinal)
			}
		}
	case RemoveMember:
		member, _ := s.Membership.byID(a.ID)
		ordinal, ours := s.Ordinal(member.Name)
		for _, m := range s.Membership.Members {
			if n, _ := s.Ordinal(m.Name); ours && member.Answers && n > ordinal {
				return fmt.Sprintf("removes %s while there is %s", member.Name, m.Name)
			}
		}
	}
	return ""
}

func hitsWhatWasSeen(s State, d Decision) string {
	seen := true
	switch a := d.Action.(type) {
	case RestartReplica:
		seen = a.PodUID != "" && a.PodUID == s.Replica(a.Ordinal).PodUID
	case DeleteVolume:
		seen = a.VolumeUID != "" && a.VolumeUID == s.Replica(a.Ordinal).VolumeUID
	case RemoveMember:
		m, listed := s.Membership.byID(a.ID)
		seen = listed && m.Name == a.Name
	case PromoteLearner:
		m, _ := s.Membership.byID(a.ID)
		seen = m.Name == a.Name && m.Learner
	case Seal:
		seen = a.ClusterID != 0 && a.ClusterID == s.Membership.ClusterID
	}
	if !seen {
		return fmt.Sprintf("%s was not seen so", d.Action)
	}
	return ""
}
