package decide

import (
	"fmt"
	"slices"
)

// mustMove returns why a member must be removed although it may still have its data (it responds, or may respond
// again), or "" if it may stay.
func (s State) mustMove(m Member) string {
	if s.onGoingVolume(m) && !s.mayServeOthers(m) {
		return "is on a volume that is being deleted"
	}
	return ""
}

// mayServeOthers reports whether a member may serve clients as part of a different member list: its own list differs,
// for example because it was restarted with --force-new-cluster, or its pod is ready although it does not respond. Data
// that it has acknowledged may exist nowhere else.
func (s State) mayServeOthers(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	return m.Disagrees != "" || ours && !m.Answers && s.Replica(ordinal).Pod == PodReady
}

// onGoingVolume reports whether the volume with a voter's data is being deleted.
func (s State) onGoingVolume(m Member) bool { return !m.Learner && s.volumeGoes(m) }

// volumeGoes reports whether the volume with a member's data is being deleted, or its claim is already gone while etcd
// still runs on it. Such a volume exists as long as the pod does.
func (s State) volumeGoes(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	going := hasVolume(r) && r.VolumeTerminating && !s.volumeLost(ordinal)
	gone := m.Answers && s.claimGone(ordinal)
	return ours && m.Started && (going || gone)
}

// claimGone reports whether a slot has no claim although a member was sealed on a volume in it. A member whose claim
// was already gone is recorded without a volume.
func (s State) claimGone(ordinal int) bool {
	recorded, _ := s.Record.Member(ordinal)
	return !hasVolume(s.Replica(ordinal)) && (recorded.VolumeUID != "" || recorded.ID != 0)
}

// safe reports whether a voter is known to have its data on a volume that is kept.
func (s State) safe(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	return ours && !m.Learner && m.Answers && hasVolume(r) && !r.VolumeTerminating && r.Stranded == "" &&
		s.mayCopyFrom(m)
}

// safeWithout counts the other voters that have their data on volumes that are kept.
func (s State) safeWithout(m Member) int {
	n := 0
	for _, other := range s.Membership.Voters() {
		if other.ID != m.ID && s.safe(other) {
			n++
		}
	}
	return n
}

// FewerCopies reports whether a removal must be decided again because fewer of the other voters now have their data on
// volumes that are kept: a claim was deleted, or etcd has found that data differs.
func FewerCopies(seen, now State, but ID) bool {
	return now.safeWithout(Member{ID: but}) < seen.safeWithout(Member{ID: but})
}

// mayGiveUp reports whether a voter that must move can be removed. All other members must be healthy, except that they
// may also have to move, and the other voters must have quorum. In addition, one of these conditions must be met:
//   - There are more voters than declared, and another voter has its data on a volume that is kept.
//   - Every declared slot has a member, and the other voters with data on volumes that are kept are enough for a quorum
//     of the declared number.
//
// Voters that must move are therefore removed one at a time, and the number of copies never decreases.
func (s State) mayGiveUp(m Member) bool {
	if !s.othersAreWell(m) || !s.Membership.Without(m.ID).HasQuorum() {
		return false
	}
	_, unfilled := s.freeOrdinal()
	voters, safe := len(s.ownVoters()), s.safeWithout(m)
	if voters > s.wanted() {
		return safe > 0
	}
	return voters == s.wanted() && !unfilled && safe >= Quorum(s.wanted())
}

// othersAreWell reports whether all other members are healthy, regardless of their volumes. Until they are, a member
// that still responds is not removed.
func (s State) othersAreWell(m Member) bool {
	return !slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		return other.ID != m.ID && s.unhealthyApartFromVolume(other)
	})
}

// othersWaitForNone reports whether all other members are healthy, or do not start because of a peer's data, which may
// be m's data.
func (s State) othersWaitForNone(m Member) bool {
	return !slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		return other.ID != m.ID && s.unhealthyApartFromVolume(other) && !s.stoppedByCheck(other)
	})
}

// unhealthyApartFromVolume reports whether a member has a problem other than still responding on a volume that is being
// deleted.
func (s State) unhealthyApartFromVolume(m Member) bool {
	goes := m.Answers && s.volumeGoes(m) && !s.mayServeOthers(m)
	return s.ailment(m) != "" && !goes
}

// goingFirst returns the voter with the highest ordinal whose volume is being deleted.
func (s State) goingFirst() (Member, bool) {
	for _, m := range slices.Backward(s.MembersInOrder()) {
		if s.onGoingVolume(m) {
			return m, true
		}
	}
	return Member{}, false
}

// addSpare adds a learner if a voter that must move cannot be removed, because too few voters have their data on
// volumes that are kept. It uses the lowest free slot, which may be one beyond the declared number. Once the voters
// that must move are replaced, the spare member is removed like any other surplus member.
func (s State) addSpare() (Decision, bool) {
	m, found := s.goingFirst()
	if !found || !s.toRun() || !s.mayCopyFrom(s.leader()) || !s.othersAreWell(m) || !s.allAnswerOnGoingVolumes() ||
		len(s.unlisted()) > 0 {
		return Decision{}, false
	}
	if enough := len(s.Membership.Members)-len(s.Guests()) > s.wanted(); enough && s.safeWithout(m) > 0 {
		return Decision{}, false
	}
	ordinal := s.lowestFreeOrdinal()
	if ordinal >= MaxOrdinals || !s.empty(ordinal) || s.peerURL(ordinal) == "" {
		return Decision{}, false
	}
	need := fmt.Sprintf("%s %s, and too few other voters are on volumes that are kept", s.nameOf(m), s.mustMove(m))
	if d, blocked := s.cannotJoin(ordinal, need); blocked {
		return d, true
	}
	return act(AddLearner{ordinal, s.peerURL(ordinal)}, "%s; adding %s as a learner first; %s", need,
		s.ReplicaName(ordinal), s.describeResponding())
}

// allAnswerOnGoingVolumes reports whether all voters on volumes that are being deleted respond: etcd does not accept a
// new member while one is unresponsive.
func (s State) allAnswerOnGoingVolumes() bool {
	return !slices.ContainsFunc(s.Membership.Members, func(m Member) bool { return s.onGoingVolume(m) && !m.Answers })
}

// lowestFreeOrdinal returns the lowest ordinal without a member, which may be one beyond the declared number.
func (s State) lowestFreeOrdinal() int {
	listed, ordinal := s.listed(), 0
	for {
		if _, taken := listed[ordinal]; !taken {
			return ordinal
		}
		ordinal++
	}
}
