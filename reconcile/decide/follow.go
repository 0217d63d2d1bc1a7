package decide

import (
	"cmp"
	"fmt"
	"slices"
)

// follow updates a record from etcd's own list: etcd changes first, and the record follows, regardless of who changed
// the list. A listed member without an entry gets an entry. If a member is no longer listed, its slot and volume are
// kept for cleanup. The record follows only a linearizable list of the recorded cluster.
func (s State) follow(r Record) Record {
	if !s.Membership.Known || r.ClusterID == 0 || r.ClusterID != s.Membership.ClusterID {
		return r
	}
	r = s.followGuests(s.takeUpGuests(r))
	listed := s.listed()
	r.JoinedTogether = r.JoinedTogether || s.Membership.learners() > 1 || s.toJoinTogether(r)
	if len(s.missing()) > 0 {
		return s.withoutRemoved(r, listed)
	}
	if confirmation := s.Declared.ConfirmedMembers; confirmation != "" {
		r.VoidConfirmation = digest(confirmation)
	}
	r = s.followRecorded(r, listed)
	for ordinal, member := range listed {
		gone, _ := r.removed(ordinal)
		startsOnKept := gone.Kept() && s.remains(gone) && !member.Started
		if _, found := r.Member(ordinal); !found && !startsOnKept {
			mode := modeOfNew(member)
			r = r.With(RecordedMember{Ordinal: ordinal, Mode: mode, Learner: mode == Sealed && member.Learner})
		}
	}
	r.LogVersion = s.logVersion(r.LogVersion)
	r.Uncompared = r.Uncompared && !s.compared()
	return s.followVolumes(r, listed)
}

// followRecorded updates the entries of the recorded members.
func (s State) followRecorded(r Record, listed map[int]Member) Record {
	others := !r.lists(listed)
	for _, m := range slices.Clone(r.Members) {
		member, found := listed[m.Ordinal]
		switch {
		case found && others && m.Mode == Founding && !member.Started:
			// The member's file would name initial members that no longer exist, and it would bootstrap a different
			// cluster.
			r = r.With(RecordedMember{Ordinal: m.Ordinal, Mode: Joining})
		case found && m.Leaving && !s.removes(member.ID):
			m.Leaving = false // etcd did not receive the request or rejected it, and the reason for it is gone
			r = r.With(m)
		case found && m.Learner && !member.Learner:
			m.Learner = false
			r = r.With(m)
		case !found:
			if m.Mode == Sealed && m.Ordinal < s.wanted() {
				r = r.countReplacement(m.Ordinal, s.Now)
			}
			r = r.WithRemoved(s.slotOf(m, r))
		}
	}
	return r
}

// slotOf returns the removed slot of a recorded member that etcd no longer lists.
func (s State) slotOf(m RecordedMember, r Record) RemovedMember {
	slot := s.Replica(m.Ordinal)
	gone := RemovedMember{Ordinal: m.Ordinal, VolumeUID: cmp.Or(slot.VolumeUID, m.VolumeUID)}
	unproven := m.Mode == Sealed && m.VolumeUID == ""
	if !unproven && usedIn(slot, r) && !losesVolume(slot) {
		gone.VolumeUID = m.VolumeUID // a different volume in the slot is newer than the record
	}
	if hasVolume(slot) && slot.VolumeUID != m.VolumeUID {
		gone.LostCluster = slot.otherUser(r.ClusterID)
	}
	return gone
}

// lists reports whether etcd lists exactly the recorded members.
func (r Record) lists(listed map[int]Member) bool {
	for _, m := range r.Members {
		if _, found := listed[m.Ordinal]; !found {
			return false
		}
	}
	return len(r.Members) == len(listed)
}

// modeOfNew returns the mode for a listed member without an entry. A member that has started needs nothing but its
// data.
func modeOfNew(m Member) Mode {
	if m.Started {
		return Sealed
	}
	return Joining
}

// followVolumes keeps the removed slots as long as they matter: while their volume exists, and while Kubernetes keeps a
// pod in them because a higher ordinal is in use. A volume in any other slot must not be deleted, because the record
// does not show to which member it belonged.
func (s State) followVolumes(r Record, listed map[int]Member) Record {
	replicas := r.Replicas()
	for ordinal := range replicas {
		_, inUse := listed[ordinal]
		if _, known := r.removed(ordinal); !inUse && !known && !hasVolume(s.Replica(ordinal)) {
			// Kubernetes will create an unneeded volume here, because a higher ordinal is in use.
			r = r.WithRemoved(RemovedMember{Ordinal: ordinal})
		}
	}
	for _, slot := range s.Replicas {
		_, inUse := listed[slot.Ordinal]
		gone, known := r.removed(slot.Ordinal)
		if !inUse && !known && losesVolume(slot) {
			// The volume is being deleted, and the volume that Kubernetes creates in its place is not needed.
			r = r.WithRemoved(RemovedMember{Ordinal: slot.Ordinal, VolumeUID: slot.VolumeUID})
		}
		isNew := gone.VolumeUID == "" || slot.Ordinal >= replicas && gone.VolumeUID != slot.VolumeUID
		if !inUse && known && isNew && slot.VolumeUID != "" && slot.VolumeToken == r.Token && !usedIn(slot, r) {
			r = r.WithRemoved(RemovedMember{Ordinal: slot.Ordinal, VolumeUID: slot.VolumeUID,
				LostCluster: slot.otherUser(r.ClusterID)})
		}
	}
	r.Removed = slices.DeleteFunc(slices.Clone(r.Removed), func(gone RemovedMember) bool {
		volume := s.Replica(gone.Ordinal).VolumeUID
		return s.inUse(gone, listed) || gone.Ordinal >= replicas && (volume == "" || volume != gone.VolumeUID)
	})
	if len(r.Removed) == 0 {
		r.Removed = nil
	}
	return r
}

// losesVolume reports whether a replica's volume is being deleted and is not used by a running pod.
func losesVolume(r Replica) bool {
	return r.VolumeTerminating && r.Pod != PodReady && r.ClusterID == 0
}

// inUse reports whether a removed slot has a member again. A member that has never started does not use it while the
// previous member's volume remains.
func (s State) inUse(gone RemovedMember, listed map[int]Member) bool {
	m, found := listed[gone.Ordinal]
	return found && (m.Started || !s.remains(gone))
}

// withoutRemoved returns the record without the removed slots that are in use again.
func (s State) withoutRemoved(r Record, listed map[int]Member) Record {
	kept := slices.DeleteFunc(slices.Clone(r.Removed), func(gone RemovedMember) bool { return s.inUse(gone, listed) })
	r.Removed = nil
	if len(kept) > 0 {
		r.Removed = kept
	}
	return r
}

// removes reports whether the member must still be removed.
func (s State) removes(id ID) bool {
	for _, rule := range []func(State) (Decision, bool){replaceMember, scaleDown} {
		if d, spoke := rule(s); spoke {
			a, _ := d.Action.(RemoveMember) // members that etcd lists have an ID
			return a.ID == id
		}
	}
	return false
}

// listed returns the members with this cluster's names, by ordinal. If etcd lists several members with the same
// ordinal, it returns the first of them in order.
func (s State) listed() map[int]Member {
	members := make(map[int]Member, len(s.Membership.Members))
	for _, m := range slices.Backward(s.MembersInOrder()) {
		if ordinal, ours := s.OrdinalOf(m); ours {
			members[ordinal] = m
		}
	}
	return members
}

// listedAt returns the same member as listed()[ordinal], and whether there is one. It does not build the map, because
// rules call it for every replica.
func (s State) listedAt(ordinal int) (Member, bool) {
	for _, m := range s.MembersInOrder() {
		if n, ours := s.OrdinalOf(m); ours && n == ordinal {
			return m, true
		}
	}
	return Member{}, false
}

// removed returns a slot's entry if its member is gone.
func (r Record) removed(ordinal int) (RemovedMember, bool) {
	for _, gone := range r.Removed {
		if gone.Ordinal == ordinal {
			return gone, true
		}
	}
	return RemovedMember{}, false
}

// recordDifferences describes how the required record differs from the current record.
func (s State) recordDifferences() []string {
	required := RequiredRecord(s, "")
	facts := append(s.memberDifferences(required), s.removedDifferences(required)...)
	facts = append(facts, s.guestDifferences(required)...)
	if required.JoinedTogether && !s.Record.JoinedTogether {
		facts = append(facts, "two members are joining together")
	}
	if required.LogVersion != "" && required.LogVersion != s.Record.LogVersion {
		facts = append(facts, fmt.Sprintf("all entries in the members' logs are from etcd %s or newer",
			required.LogVersion))
	}
	if required.CA != s.Record.CA {
		facts = append(facts, fmt.Sprintf("the CA that members trust, %s, is not recorded", short(required.CA)))
	}
	if s.recorded() && required.Uncompared != s.Record.Uncompared {
		facts = append(facts, s.describeComparison())
	}
	for _, r := range s.WrongMarks() {
		facts = append(facts, fmt.Sprintf("the claim of %s is marked as belonging to a lost cluster, but etcd lists "+
			"its member", s.ReplicaName(r.Ordinal)))
	}
	switch void := required.VoidRecovery; {
	case void == s.Record.VoidRecovery:
	case void == "":
		facts = append(facts, "git no longer requests the recovery that had no effect")
	case s.Membership.Unconfirmed:
		facts = append(facts, "the requested recovery has no effect because a member returns a member list: the "+
			"cluster may have quorum")
	case !s.Membership.Known:
		facts = append(facts, "the requested recovery is not carried out because the record was lost or restored: "+
			"the cluster may have had quorum since the recovery was declared")
	default:
		facts = append(facts, "the requested recovery has no effect because the cluster has quorum")
	}
	if len(facts) == 0 && required.VoidConfirmation != s.Record.VoidConfirmation {
		facts = append(facts, "the annotation etcd.quorate.dev/confirm-members is no longer valid: no member is "+
			"missing")
	}
	if len(facts) == 0 && !required.Equal(s.Record) {
		facts = append(facts, "the record is outdated")
	}
	return facts
}

// memberDifferences describes how the members of the required record differ from the current members.
func (s State) memberDifferences(required Record) []string {
	var facts []string
	for _, m := range required.Members {
		if _, found := s.Record.Member(m.Ordinal); !found && s.Membership.Known {
			facts = append(facts, fmt.Sprintf("etcd lists %s, which is not recorded", s.ReplicaName(m.Ordinal)))
		} else if !found {
			facts = append(facts, fmt.Sprintf("%s exists but is not recorded", s.ReplicaName(m.Ordinal)))
		}
	}
	for _, m := range s.Record.Members {
		switch after, found := required.Member(m.Ordinal); {
		case !found:
			facts = append(facts, fmt.Sprintf("etcd no longer lists %s", s.ReplicaName(m.Ordinal)))
		case m.Learner && !after.Learner:
			facts = append(facts, fmt.Sprintf("%s has become a voter", s.ReplicaName(m.Ordinal)))
		}
	}
	return facts
}

// removedDifferences describes how the removed slots of the required record differ from the current removed slots.
func (s State) removedDifferences(required Record) []string {
	var facts []string
	for _, gone := range required.Removed {
		if before, known := s.Record.removed(gone.Ordinal); !known && gone.VolumeUID != "" || known && before != gone {
			facts = append(facts, fmt.Sprintf("a volume of %s remains", s.ReplicaName(gone.Ordinal)))
		}
	}
	for _, gone := range s.Record.Removed {
		if _, still := required.removed(gone.Ordinal); !still {
			facts = append(facts, fmt.Sprintf("%s has nothing left to clean up", s.ReplicaName(gone.Ordinal)))
		}
	}
	return facts
}

// usedIn reports whether a member of the recorded cluster was the last to use the slot's volume. The record must
// contain the cluster ID.
func usedIn(slot Replica, r Record) bool { return slot.LastUse.ClusterID == r.ClusterID }
