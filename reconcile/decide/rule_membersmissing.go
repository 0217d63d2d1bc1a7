package decide

import (
	"fmt"
	"slices"
	"strings"
)

// membersMissing blocks if at least half of the recorded voters left the list at the same time: a member was started
// with --force-new-cluster, the voters were removed manually, or a member returns a false list while the others are
// silent (hard case H133). The missing members may have the only copy of writes that they acknowledged.
func membersMissing(s State) (Decision, bool) {
	missing := s.missing()
	formed := s.ReportedClusterID != 0 || s.formedBefore()
	if len(missing) == 0 || !s.toRun() || s.Record.MayFound() && formed {
		// Stopping the pods keeps all volumes. If the record still allows members to bootstrap a cluster that has
		// already formed, the record must be corrected first.
		return Decision{}, false
	}
	var names []string
	for _, m := range missing {
		names = append(names, s.ReplicaName(m.Ordinal))
	}
	return block("etcd no longer lists %s, at least half of the recorded voters, and Quorate did not remove them. All "+
		"pods and volumes are kept. If the members that etcd lists (%s) hold all the data you need, set the "+
		"annotation etcd.quorate.dev/confirm-members: %q in git; the other volumes are then deleted and the members "+
		"recreated. Otherwise set spec.suspend and save those volumes first",
		Enumerate(names), s.describeQuorum(), s.ListToConfirm())
}

// ListToConfirm returns the value of the annotation that confirms etcd's list: the listed IDs, and a digest of the
// recorded members, the existing volumes and the last void confirmation. The replacements of lost members and volumes
// have new IDs. Therefore, a value does not confirm a later loss if it has already been used, if it was not needed, or
// if it dates from before an older record was restored.
func (s State) ListToConfirm() string {
	var ids []string
	for _, id := range s.listedIDs() {
		ids = append(ids, id.String())
	}
	return strings.Join(slices.Sorted(slices.Values(ids)), ",") + "/" + s.possessions()
}

// possessions returns a digest of the recorded members, the existing volumes and the last void confirmation. It does
// not depend on etcd.
func (s State) possessions() string {
	var text strings.Builder
	fmt.Fprint(&text, s.Record.ClusterID, s.Record.VoidConfirmation)
	for _, m := range s.Record.Members {
		fmt.Fprintf(&text, " %d=%s/%s", m.Ordinal, m.ID, m.VolumeUID)
	}
	for _, r := range s.replicasInOrder() {
		if hasVolume(r) {
			fmt.Fprintf(&text, " %d:%s", r.Ordinal, r.VolumeUID)
		}
	}
	return digest(text.String())
}

// RecordedVoters returns the recorded members that have a vote and keep it, in order: etcd has listed them as voters,
// or will list them as its initial members, and Quorate is not about to remove them. Members whose ID and volume are
// not recorded do not count: a record that was recreated from the volumes may name members that etcd has removed. It
// returns nothing for a record that does not describe the current cluster.
func (s State) RecordedVoters() []RecordedMember {
	if s.recordLost() {
		return nil
	}
	var voters []RecordedMember
	for _, m := range s.Record.Members {
		unproven := m.Mode == Sealed && m.ID == 0 && m.VolumeUID == ""
		if m.Mode != Joining && !m.Learner && !m.Leaving && !unproven {
			voters = append(voters, m)
		}
	}
	return voters
}

// RecordedGuests returns the recorded guests that git does not release. Like RecordedVoters, they count towards the
// majority that must return a member list.
func (s State) RecordedGuests() []ID {
	if s.recordLost() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Record.Guests), s.Declared.Adoption.releases)
}

// ConfirmedMembers returns the members that git confirms as the complete member list, in ascending order. It returns
// nil if git does not confirm a list, or confirms it for different recorded members or volumes.
func (s State) ConfirmedMembers() []ID {
	list, of, _ := strings.Cut(s.Declared.ConfirmedMembers, "/")
	if of != s.possessions() {
		return nil
	}
	var ids []ID
	for text := range strings.SplitSeq(list, ",") {
		var id ID
		if id.UnmarshalText([]byte(text)) != nil {
			return nil
		}
		ids = append(ids, id)
	}
	return sortedIDs(ids)
}

// missing returns the recorded voters that are not in the recorded cluster's linearizable list, if the list does not
// contain a majority of the recorded voters and the missing voters are not all recorded as leaving. It returns nothing
// for a list that was confirmed in git.
func (s State) missing() []RecordedMember {
	if s.membersConfirmed() {
		return nil
	}
	return s.unconfirmed()
}

// unconfirmed returns the same as missing, regardless of confirmations.
func (s State) unconfirmed() []RecordedMember {
	another := s.Record.ClusterID != 0 && s.Record.ClusterID != s.Membership.ClusterID
	if !s.Membership.Known && !s.Membership.Unrecorded || another {
		return nil
	}
	listed := s.listed()
	var missing []RecordedMember
	voters, remaining := 0, 0
	for _, m := range s.Record.Members {
		if m.Mode == Joining {
			continue // etcd has listed it as a learner
		}
		voters++
		switch member, found := listed[m.Ordinal]; {
		case found && m.standsBy(member):
			remaining++
		case !m.Leaving:
			missing = append(missing, m)
		}
	}
	if remaining >= Quorum(voters) {
		return nil
	}
	return missing
}

// standsBy reports whether the listed member in the slot is the recorded member, or has replaced the recorded member
// and is serving. If no ID is recorded, the listed member is treated as the recorded member, unless Quorate cannot have
// added it. That is the case for a learner in the slot of an initial member, because initial members are voters, and
// for an unstarted learner in the slot of a sealed member, because sealed members have started.
func (m RecordedMember) standsBy(listed Member) bool {
	if m.ID == 0 {
		return listed.Answers || !listed.Learner || m.Mode != Founding && listed.Started
	}
	return listed.Answers || m.ID == listed.ID
}

// membersConfirmed reports whether git names exactly the members that etcd lists.
func (s State) membersConfirmed() bool {
	named := s.ConfirmedMembers()
	return len(named) > 0 && slices.Equal(named, sortedIDs(s.listedIDs()))
}

func (s State) listedIDs() []ID {
	var ids []ID
	for _, m := range s.Membership.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

func sortedIDs(ids []ID) []ID { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// NeedsAnnouncement reports whether the removal of a member must be recorded before it is requested from etcd, because
// fewer than a majority of the recorded voters would remain, or a quorum of those that remain could be smaller than
// such a majority. The list alone would then not show that the removal was intended. Like missing, it also treats
// recorded learners as voters.
func NeedsAnnouncement(s State, id ID) bool {
	if m, listed := s.Membership.byID(id); listed {
		ordinal, _ := s.OrdinalOf(m)
		if recorded, _ := s.Record.Member(ordinal); recorded.Leaving {
			return false
		}
	}
	voters, remaining, learners, remainingLearners := 0, 0, 0, 0
	for _, m := range s.Record.Members {
		member, found := s.listedAt(m.Ordinal)
		remains := found && member.ID != id && (m.ID == 0 || m.ID == member.ID)
		switch {
		case m.Mode == Joining:
		case m.Learner:
			learners++
			if remains {
				remainingLearners++
			}
		default:
			voters++
			if remains {
				remaining++
			}
		}
	}
	return remaining < Quorum(voters) || Quorum(remaining) < Quorum(voters) ||
		remaining+remainingLearners < Quorum(voters+learners)
}

// AnnouncedRecord returns the record that names the member to be removed from etcd.
func AnnouncedRecord(s State, id ID) (Record, error) {
	m, listed := s.Membership.byID(id)
	ordinal, ours := s.OrdinalOf(m)
	recorded, found := s.Record.Member(ordinal)
	if !listed || !ours || !found {
		return Record{}, fmt.Errorf("record the removal of member %s: the member is not recorded", id)
	}
	recorded.Leaving = true
	return s.Record.With(recorded), nil
}
