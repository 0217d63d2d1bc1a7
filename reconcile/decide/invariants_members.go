package decide

import "fmt"

func recordOnlyTightens(s State, d Decision) string {
	switch a := d.Action.(type) {
	case Bootstrap:
		return loosened(s, StandingRecord(s, "fresh"), true)
	case ApplyObjects:
		return loosened(s, StandingRecord(s, "fresh"), false)
	case StartRollout:
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
	if what := mistakenCA(s, after.CA); what != "" {
		return what
	}
	for _, m := range s.Record.Members {
		if what := loosens(s, m, after); what != "" {
			return fmt.Sprintf("%s: %s", s.ReplicaName(m.Ordinal), what)
		}
	}
	for _, m := range after.Members {
		if what := outOfNothing(s, m, founds); what != "" {
			return fmt.Sprintf("%s becomes %s %s", s.ReplicaName(m.Ordinal), m.Mode, what)
		}
	}
	for _, gone := range after.Removed {
		if m, listed := atOrdinal(s, gone.Ordinal); listed && s.Membership.Known && (m.Started || !keepsVolume(s.Replica(gone.Ordinal), gone.VolumeUID)) {
			return fmt.Sprintf("%s counts as removed, and etcd lists it", s.ReplicaName(gone.Ordinal))
		}
	}
	return ""
}

// keepsVolume: that volume is in the slot, and stays there.
func keepsVolume(r Replica, uid string) bool {
	goes := r.VolumeTerminating && (r.Pod == PodAbsent || r.Pod == PodTerminating)
	return uid != "" && r.VolumeUID == uid && !goes
}

// outOfNothing says what is wrong with an entry that was not there before.
func outOfNothing(s State, m RecordedMember, founds bool) string {
	_, before := s.Record.Member(m.Ordinal)
	member, listed := atOrdinal(s, m.Ordinal)
	switch {
	case before:
		return ""
	case len(s.Record.Members) > 0 && (m.Mode == Founding || !listed || !s.Membership.Known):
		return "out of nothing"
	case len(s.Record.Members) > 0 && (m.Mode == Sealed) != member.Started:
		return "although started is " + fmt.Sprint(member.Started)
	case len(s.Record.Members) == 0 && founds != (m.Mode == Founding):
		return "out of nothing"
	case m.Mode == Joining && (!s.Membership.Known || member.Started):
		return "although it is not about to join"
	}
	return ""
}

// atOrdinal is the member that etcd lists in a slot, by its name or else by its peer URL.
func atOrdinal(s State, ordinal int) (Member, bool) {
	for _, m := range s.Membership.Members {
		if n, ours := s.OrdinalOf(m); ours && n == ordinal {
			return m, true
		}
	}
	return Member{}, false
}

// loosens says what a record takes back of what the one in s says of a member.
func loosens(s State, before RecordedMember, after Record) string {
	m, found := after.Member(before.Ordinal)
	member, listed := atOrdinal(s, before.Ordinal)
	rolledBack := s.Record.ClusterID == 0 && s.ReportedClusterID != 0
	switch {
	case !found && s.Membership.Known && !listed && after.ClusterID == s.Membership.ClusterID && forgets(s, before):
		return "is dropped, and no majority of those on record stands behind the list"
	case !found && s.Membership.Known && !listed && after.ClusterID == s.Membership.ClusterID:
		return ""
	case !found:
		return "is dropped"
	case before.Mode == Sealed && m.Mode != Sealed:
		return "is unsealed"
	case before.Mode != Sealed && m.Mode == Sealed && !(s.Membership.Known && member.Started) && !rolledBack:
		return "is sealed before it started"
	}
	return ""
}

func unknownChangesNothing(s State, d Decision) string {
	if s.Membership.Known {
		return ""
	}
	switch a := d.Action.(type) {
	case RestartReplica:
		r := s.Replica(a.Ordinal)
		if r.Pod == PodFailing || r.Pod == PodPending {
			return "" // nothing runs in it
		}
	case DeleteVolume:
		if wholeClusterGoes(s) {
			return ""
		}
	case Seal, AddLearner, PromoteLearner, RemoveMember, MoveLeader, DisarmAlarm, EnableDowngrade, CancelDowngrade:
	default:
		return ""
	}
	return fmt.Sprintf("%s although the membership is not known", d.Action)
}

// wholeClusterGoes: git declares it deleted with its volumes, and nothing of it runs or can start.
func wholeClusterGoes(s State) bool {
	for _, r := range s.Replicas {
		if r.Pod != PodAbsent {
			return false
		}
	}
	return s.Declared.Lifecycle == "Deleted" && s.Declared.Retention == "Delete" &&
		s.Objects.RunsReplicas == 0 && len(s.Membership.Members) == 0
}

func quorumSurvives(s State, d Decision) string {
	var after Membership
	switch a := d.Action.(type) {
	case PromoteLearner:
		after = s.Membership.promoted(a.ID)
	case RemoveMember:
		after = s.Membership.without(a.ID)
	case RestartReplica:
		member := s.Membership.byName(s.ReplicaName(a.Ordinal))
		voters := s.Membership.Voters()
		// There is no other way to restart one of a cluster that is to have one or two.
		alone := len(voters) < 3 && s.Declared.Replicas < 3 && Answering(voters) == len(voters)
		if !member.Answers || member.Learner || alone {
			return ""
		}
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
		member = s.Membership.byName(s.ReplicaName(a.Ordinal))
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
	if !deletes || wholeClusterGoes(s) {
		return ""
	}
	for _, m := range s.Membership.Members {
		ordinal, ours := s.OrdinalOf(m)
		switch {
		case ours && ordinal == a.Ordinal:
			return "deletes the volume of a member that etcd lists"
		case m.Name == "" && !ours:
			return "deletes a volume while it is not known where a member is"
		}
	}
	return ""
}

func emptySlot(s State, d Decision) string {
	a, adds := d.Action.(AddLearner)
	r := s.Replica(a.Ordinal)
	goes := r.VolumeTerminating && (r.Pod == PodAbsent || r.Pod == PodTerminating)
	if !adds || r.VolumeUID == "" || goes {
		return ""
	}
	for _, gone := range s.Record.Removed {
		if gone.Ordinal == a.Ordinal && gone.VolumeUID != "" && gone.VolumeUID != r.VolumeUID && !r.VolumeTerminating {
			return "" // made since, for a pod that has no file to start with
		}
	}
	return "adds a member where a volume is left"
}

func deadGoFirst(s State, d Decision) string {
	if _, adds := d.Action.(AddLearner); !adds {
		return ""
	}
	if Answering(s.Membership.Members) < len(s.Membership.Members) {
		return "adds a member while another does not answer"
	}
	return ""
}

func lowestInHighestOut(s State, d Decision) string {
	switch a := d.Action.(type) {
	case AddLearner:
		for ordinal := range a.Ordinal {
			if _, listed := atOrdinal(s, ordinal); !listed {
				return fmt.Sprintf("adds %d while %d is free", a.Ordinal, ordinal)
			}
		}
		if a.Ordinal >= s.Declared.Replicas && !anyVolumeGoes(s) {
			return fmt.Sprintf("adds %d, and %d are declared", a.Ordinal, s.Declared.Replicas)
		}
	case RemoveMember:
		member, _ := s.Membership.byID(a.ID)
		ordinal, ours := s.OrdinalOf(member)
		for _, m := range s.Membership.Members {
			doomed := outvoted(s, member) || member.Learner && doubted(s) || doomedVolume(s, member)
			if n, _ := s.OrdinalOf(m); ours && member.Answers && !doomed && n > ordinal {
				return fmt.Sprintf("removes %s while there is %s", member.Name, m.Name)
			}
		}
	}
	return ""
}

// anyVolumeGoes: the volume of a member that etcd lists is being deleted, so one more than declared may join before it goes.
func anyVolumeGoes(s State) bool {
	for _, r := range s.Replicas {
		if _, listed := atOrdinal(s, r.Ordinal); listed && r.VolumeTerminating && r.VolumeUID != "" {
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

func hitsWhatWasSeen(s State, d Decision) string {
	seen := true
	switch a := d.Action.(type) {
	case RestartReplica:
		seen = a.PodUID != "" && a.PodUID == s.Replica(a.Ordinal).PodUID
	case DeleteVolume:
		seen = a.VolumeUID != "" && a.VolumeUID == s.Replica(a.Ordinal).VolumeUID
	case RemoveMember:
		m, listed := s.Membership.byID(a.ID)
		seen = listed && (m.Name == a.Name || m.Name == "") && lossIsSeen(s, a, m)
	case PromoteLearner:
		m, _ := s.Membership.byID(a.ID)
		seen = m.Name == a.Name && m.Learner
	case DisarmAlarm:
		seen = false
		for _, alarm := range s.Membership.StaleAlarms {
			seen = seen || alarm == Alarm(a)
		}
		for _, m := range s.Membership.Members {
			for _, kind := range m.Alarms {
				seen = seen || a == DisarmAlarm{m.ID, kind} && kind == "CORRUPT"
			}
		}
	case Seal:
		seen = a.ClusterID != 0 && a.ClusterID == s.Membership.ClusterID
	}
	if !seen {
		return fmt.Sprintf("%s was not seen so", d.Action)
	}
	return ""
}
