package decide

import (
	"fmt"
	"slices"
	"strings"
)

// replaceMember removes a permanently lost member, if the others have quorum without it. Its slot is filled again like
// any free slot. A member that may still have its data is removed only if enough other members have the data on volumes
// that are kept; otherwise, a member is added first.
func replaceMember(s State) (Decision, bool) {
	if !s.Membership.Known {
		return Decision{}, false
	}
	var stuck Decision
	for _, m := range slices.Backward(s.MembersInOrder()) {
		why := s.lost(m)
		if why == "" || !s.Membership.Without(m.ID).HasQuorum() || m.Answers && !s.othersWaitForNone(m) {
			continue
		}
		if again := s.replacedAgainAndAgain(m); again != "" {
			stuck, _ = block("%s %s, and %s", s.nameOf(m), why, again)
			continue
		}
		if d, waits := s.backUpFirst(m, why); waits {
			stuck = d
			continue
		}
		return s.giveUp(m, why)
	}
	for _, m := range slices.Backward(s.MembersInOrder()) {
		why := s.mustMove(m)
		if why != "" && s.mayGiveUp(m) {
			return s.giveUp(m, why)
		}
	}
	if d, adds := s.addSpare(); adds {
		return d, true
	}
	if stuck.Verdict != "" && s.awaitsBackup() {
		if d, fills := s.fillDespiteDoubt(); fills {
			return d, true
		}
	}
	_, surplus := s.surplus()
	_, promotes := promoteLearner(s)
	return stuck, stuck.Verdict != "" && !surplus && !promotes
}

// giveUp removes a member. A leading voter first transfers leadership, preferably to a voter that does not have to
// move, and never to a voter whose data may be wrong (see transferLeadership); a CORRUPT alarm does not prevent
// elections.
func (s State) giveUp(m Member, why string) (Decision, bool) {
	if m.Leader && len(s.Membership.Voters()) > 1 {
		if d, hands := s.transferLeadership(m, func(to Member) bool { return s.mustMove(to) == "" }, "%s %s", m.Name,
			why); hands {
			return d, true
		}
		return s.transferLeadership(m, func(Member) bool { return true }, "%s %s", m.Name, why)
	}
	return s.removal(ruleReplaceMember, RemoveMember{m.ID, s.nameOf(m), s.evidenceFor(m)},
		"%s %s: removing this member so that a new one can take its place; %s", s.nameOf(m), why,
		s.describeResponding())
}

// transferLeadership asks the leader to transfer leadership to the acceptable voter with the lowest ordinal that has
// caught up (hard cases H23, H84). It waits for a voter to catch up, and does not apply if no voter is acceptable.
func (s State) transferLeadership(from Member, willDo func(Member) bool, format string, args ...any) (Decision, bool) {
	why := fmt.Sprintf(format, args...)
	var late []string
	for _, to := range s.MembersInOrder() {
		if to.ID == from.ID || !s.mayLead(to) || !willDo(to) {
			continue
		}
		if s.near(to) {
			return act(MoveLeader{From: from.ID, To: to.ID}, "%s: transferring leadership to %s first", why,
				s.nameOf(to))
		}
		late = append(late, s.nameOf(to))
	}
	if len(late) == 0 {
		return Decision{}, false
	}
	return wait(recheckSettling, "%s: leadership will be transferred once %s has caught up", why, strings.Join(late,
		" or "))
}

// mayLead reports whether leadership may be transferred to a member once it has caught up.
func (s State) mayLead(m Member) bool { return !m.Learner && m.Answers && s.mayCopyFrom(m) }

// promoteLearner promotes a learner that is sealed and has at least nine tenths of the leader's log, which is the
// minimum that etcd accepts (hard case H13). The new voter counts for quorum immediately.
func promoteLearner(s State) (Decision, bool) {
	for _, m := range s.MembersInOrder() {
		if m.Learner && s.MayPromote(m.ID) {
			return act(PromoteLearner{m.ID, m.Name}, "%s has caught up with the leader; %s", m.Name,
				s.describeResponding())
		}
	}
	return Decision{}, false
}

// MayPromote reports whether the learner may become a voter: it responds and has caught up, its data is not in doubt,
// its volume is kept, and the voters including the learner have quorum.
func (s State) MayPromote(id ID) bool {
	m, _ := s.Membership.byID(id)
	ordinal, ours := s.OrdinalOf(m)
	recorded, _ := s.Record.Member(ordinal)
	ready := ours && m.Learner && m.Started && recorded.Mode == Sealed && m.Applied*10 >= s.leader().Applied*9
	return ready && s.Membership.Known && !s.listsDiffer() && s.mayCopyFrom(s.leader()) &&
		m.Answers && !s.volumeGoes(m) && s.Membership.promoted(id).HasQuorum()
}

// disarmAlarm disarms alarms of removed members. A CORRUPT alarm, including that of a current voter, is disarmed only
// once all voters are known to hold the same data. A NOSPACE alarm of a current member is disarmed only if git declares
// this, and once all databases have room.
func disarmAlarm(s State) (Decision, bool) {
	stale := slices.DeleteFunc(slices.Clone(s.Membership.StaleAlarms),
		func(a Alarm) bool { return a.ID == unidentified || a.Kind == AlarmCorrupt })
	ended := slices.Concat(stale, s.refuted(), s.outOfSpaceNoMore())
	if !s.Membership.Known || len(ended) == 0 {
		return Decision{}, false
	}
	first := slices.MinFunc(ended, Alarm.compare)
	what := s.describeAlarm(first) + " is still active"
	switch _, listed := s.Membership.byID(first.ID); {
	case first.Kind == AlarmCorrupt:
		return act(DisarmAlarm(first), "%s, but all voters hold the same data: %s", what, s.describeHashes())
	case listed:
		return act(DisarmAlarm(first), "%s, but every database uses less than %d %% of its quota", what, nearQuota)
	}
	return act(DisarmAlarm(first), "%s", what)
}

func (s State) describeAlarm(a Alarm) string {
	m, listed := s.Membership.byID(a.ID)
	switch {
	case listed:
		return fmt.Sprintf("the %s alarm of %s", a.Kind, s.nameOf(m))
	case a.ID == unidentified:
		return fmt.Sprintf("the %s alarm of an unidentified member", a.Kind)
	}
	return fmt.Sprintf("the %s alarm of removed member %s", a.Kind, a.ID)
}

// cleanUp deletes the volumes of members that etcd no longer lists. Kubernetes keeps a pod in every slot below the
// highest slot. If such a pod still holds a removed member's volume, the pod is recreated on an empty volume, because a
// new member must not start on a volume that is about to be deleted.
func cleanUp(s State) (Decision, bool) {
	if !s.Membership.Known {
		return Decision{}, false
	}
	listed := s.listed()
	for _, gone := range s.Record.Removed {
		r := s.Replica(gone.Ordinal)
		_, inUse := listed[gone.Ordinal]
		if !inUse && !s.keeps(gone) && s.Membership.allNamed(s) && hasVolume(r) && r.VolumeUID == gone.VolumeUID &&
			!r.VolumeTerminating {
			return act(DeleteVolume{r.Ordinal, r.VolumeUID},
				"etcd no longer lists %s: deleting its remaining volume", s.ReplicaName(r.Ordinal))
		}
	}
	for _, r := range s.replicasInOrder() {
		m, inUse := listed[r.Ordinal]
		_, removed := s.Record.removed(r.Ordinal)
		mayServe := !inUse && !removed && (r.Pod == PodReady || r.ClusterID != 0) // it is unknown for which cluster
		serves := inUse && (m.Started || m.Answers) || mayServe
		if !serves && s.Membership.allNamed(s) && r.holdsGoingVolume() && r.Ordinal < s.Record.Replicas() {
			return act(RestartReplica{r.Ordinal, r.PodUID},
				"pod %s uses a removed member's volume: recreating the pod on an empty volume",
				s.ReplicaName(r.Ordinal))
		}
	}
	return Decision{}, false
}

// holdsGoingVolume reports whether a pod holds a volume that is being deleted, or whose claim is gone. A pending pod
// gets a new claim by itself.
func (r Replica) holdsGoingVolume() bool {
	claimGone := !hasVolume(r) && hasPodThatStays(r) && r.Pod != PodPending
	return (r.holdsTerminating() || claimGone) && r.PodUID != ""
}

// allNamed reports whether the slot of every member is known, or the member is known not to be in a slot.
func (m Membership) allNamed(s State) bool {
	return !slices.ContainsFunc(m.Members, func(member Member) bool {
		_, ours := s.OrdinalOf(member)
		return member.Name == "" && !ours
	})
}

func waitForCleanUp(s State) (Decision, bool) {
	var going []string
	for _, gone := range s.Record.Removed {
		r := s.Replica(gone.Ordinal)
		if !gone.Kept() && gone.Ordinal >= s.Record.Replicas() && hasVolume(r) {
			going = append(going, fmt.Sprintf("the volume of %s", s.ReplicaName(gone.Ordinal)))
		}
	}
	if len(going) == 0 {
		return Decision{}, false
	}
	return wait(recheckSettling, "being deleted: %s", sentence(going))
}
