package decide

import "slices"

// doomed says why a member must not keep its place although it may still have its data: it answers,
// or may do so again. Empty if it may stay.
func (s State) doomed(m Member) string {
	if s.onGoingVolume(m) && !s.mayServeOthers(m) {
		return "is on a volume that is being deleted"
	}
	return ""
}

// mayServeOthers reports whether a member may serve clients beside the list that is known: it goes
// by another one, as after somebody has forced a new cluster on it, or Kubernetes finds it ready
// although it does not answer. What it has acknowledged nobody else may have.
func (s State) mayServeOthers(m Member) bool {
	ordinal, _ := s.OrdinalOf(m)
	return m.Disagrees != "" || !m.Answers && s.Replica(ordinal).Pod == PodReady
}

// onGoingVolume reports whether the volume with a voter's data goes.
func (s State) onGoingVolume(m Member) bool { return !m.Learner && s.volumeGoes(m) }

// volumeGoes reports whether the volume with a member's data is being deleted, or its claim is gone
// already while etcd still runs on it. It is there as long as the pod is.
func (s State) volumeGoes(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	going := hasVolume(r) && r.VolumeTerminating && !s.volumeLost(ordinal)
	gone := m.Answers && s.claimGone(ordinal)
	return ours && m.Started && (going || gone)
}

// claimGone reports whether a slot has no claim although a member was sealed on a volume in it. If the claim was gone
// before that, the member is on record without a volume.
func (s State) claimGone(ordinal int) bool {
	recorded, _ := s.Record.Member(ordinal)
	return !hasVolume(s.Replica(ordinal)) && (recorded.VolumeUID != "" || recorded.ID != 0)
}

// safe reports whether a voter has its data on a volume that stays, as far as anybody knows.
func (s State) safe(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	return ours && !m.Learner && m.Answers && hasVolume(r) && !r.VolumeTerminating && r.Stranded == "" &&
		s.mayCopyFrom(m)
}

// safeWithout counts the voters beside that member that have their data on volumes that stay.
func (s State) safeWithout(m Member) int {
	n := 0
	for _, other := range s.Membership.Voters() {
		if other.ID != m.ID && s.safe(other) {
			n++
		}
	}
	return n
}

// FewerCopies reports whether fewer voters beside one that is to be removed have their data on volumes that stay than
// were seen to: somebody has deleted a claim, or etcd has found since that data differ. Then it is to be decided again.
func FewerCopies(seen, now State, but ID) bool {
	return now.safeWithout(Member{ID: but}) < seen.safeWithout(Member{ID: but})
}

// mayGiveUp reports whether a doomed voter can go: all others are well, but for being doomed
// themselves; they hold quorum; and either somebody has taken its place already, or as many of them
// have the data on volumes that stay as make a quorum of what is declared. So doomed voters go one
// at a time, and never are there fewer copies than there were.
func (s State) mayGiveUp(m Member) bool {
	if !s.othersAreWell(m) || !s.Membership.without(m.ID).HasQuorum() {
		return false
	}
	_, unfilled := s.freeOrdinal()
	voters, safe := len(s.Membership.Voters()), s.safeWithout(m)
	if voters > s.Declared.Replicas {
		return safe > 0
	}
	return voters == s.Declared.Replicas && !unfilled && safe >= Quorum(s.Declared.Replicas)
}

// othersAreWell reports whether all but that member are well, whatever becomes of their volumes:
// one that still answers is not given up before.
func (s State) othersAreWell(m Member) bool {
	return !slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		return other.ID != m.ID && s.ails(other)
	})
}

// othersWaitForNone reports whether all but that member are well, or do not start because of a peer's data,
// which may be that member's.
func (s State) othersWaitForNone(m Member) bool {
	return !slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		return other.ID != m.ID && s.ails(other) && !s.stoppedByCheck(other)
	})
}

// ails reports whether something else is wrong with a member than that its volume goes, on which it still answers.
func (s State) ails(m Member) bool {
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

// addSpare adds a learner where too few voters have their data on volumes that stay for a doomed
// one to go: in the lowest free slot, which may be one more than declared. When the doomed ones are
// replaced, it is one too many and goes like any other.
func (s State) addSpare() (Decision, bool) {
	m, found := s.goingFirst()
	if !found || !s.toRun() || !s.mayCopyFrom(s.leader()) || !s.othersAreWell(m) || !s.allAnswerOnGoingVolumes() ||
		len(s.unlisted()) > 0 {
		return Decision{}, false
	}
	if enough := len(s.Membership.Members) > s.Declared.Replicas; enough && s.safeWithout(m) > 0 {
		return Decision{}, false
	}
	ordinal := s.lowestFreeOrdinal()
	if ordinal >= MaxOrdinals || !s.empty(ordinal) || s.peerURL(ordinal) == "" {
		return Decision{}, false
	}
	return act(AddLearner{ordinal, s.peerURL(ordinal)},
		"%s %s, and too few others have its data on volumes that stay: add %s as a learner before it goes; %s answer",
		s.nameOf(m), s.doomed(m), s.ReplicaName(ordinal), s.describeQuorum())
}

// allAnswerOnGoingVolumes reports whether all voters on volumes that are being deleted answer: etcd
// takes no new member while one is silent.
func (s State) allAnswerOnGoingVolumes() bool {
	return !slices.ContainsFunc(s.Membership.Members, func(m Member) bool { return s.onGoingVolume(m) && !m.Answers })
}

// lowestFreeOrdinal is the lowest ordinal without a member, which may be one beyond the declared
// number.
func (s State) lowestFreeOrdinal() int {
	listed, ordinal := s.listed(), 0
	for {
		if _, taken := listed[ordinal]; !taken {
			return ordinal
		}
		ordinal++
	}
}
