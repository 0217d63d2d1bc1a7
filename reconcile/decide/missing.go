package decide

import (
	"fmt"
	"slices"
	"strings"
)

// membersMissing stops before a list that lost half or more of the recorded voters at once:
// somebody has forced a new cluster on one member, or removed them by hand. What is missing there
// may be the only copy of what the others have acknowledged.
func membersMissing(s State) (Decision, bool) {
	missing := s.missing()
	if len(missing) == 0 || !s.toRun() {
		return Decision{}, false // to stop the pods costs no volume
	}
	var names, ids []string
	for _, m := range missing {
		names = append(names, s.ReplicaName(m.Ordinal))
	}
	for _, m := range s.MembersInOrder() {
		ids = append(ids, m.ID.String())
	}
	return block("etcd lists %s no longer, which is half or more of the voters on record, and Quorate "+
		"has not removed them; their pods and volumes are kept as they are. If the members that etcd lists (%s) "+
		"have all data that matters, confirm it in git by the annotation etcd.quorate.dev/confirm-members: %q; "+
		"the other volumes are deleted then, and their slots filled again. If not, set spec.suspend, and save those "+
		"volumes first", Enumerate(names), s.describeQuorum(), strings.Join(slices.Sorted(slices.Values(ids)), ","))
}

// missing are the recorded voters that the linearizable list of the recorded cluster does not hold,
// if no majority of those on record is in it and they are not all on record as leaving. A list that
// a person has confirmed misses nobody.
func (s State) missing() []RecordedMember {
	if s.membersConfirmed() {
		return nil
	}
	return s.unconfirmed()
}

// unconfirmed is what missing returns, whatever a person has confirmed.
func (s State) unconfirmed() []RecordedMember {
	another := s.Record.ClusterID != 0 && s.Record.ClusterID != s.Membership.ClusterID
	if !s.Membership.Known || another {
		return nil
	}
	listed := s.listed()
	var missing []RecordedMember
	voters, standing := 0, 0
	for _, m := range s.Record.Members {
		if m.Mode == Joining {
			continue // etcd has listed it as a learner
		}
		voters++
		switch member, found := listed[m.Ordinal]; {
		case found && m.standsBy(member):
			standing++
		case !m.Leaving:
			missing = append(missing, m)
		}
	}
	if standing >= Quorum(voters) {
		return nil
	}
	return missing
}

// standsBy reports whether the member that etcd lists in the slot is the one on record, or has
// replaced it and serves. Without an ID on record it is taken for it, but for a learner that
// somebody else has added: in the slot of a founding member, which was a voter, or, not started, in
// that of one that was sealed, which had started.
func (m RecordedMember) standsBy(listed Member) bool {
	if m.ID == 0 {
		return listed.Answers || !listed.Learner || m.Mode != Founding && listed.Started
	}
	return listed.Answers || m.ID == listed.ID
}

// membersConfirmed reports whether git names exactly the members that etcd lists. A confirmation is
// good once: one that has been followed before says nothing about what is missing now.
func (s State) membersConfirmed() bool {
	named := sortedIDs(s.Declared.ConfirmedMembers)
	return len(named) > 0 && slices.Equal(named, sortedIDs(s.listedIDs())) && !slices.Equal(named, s.Record.Confirmed)
}

func (s State) listedIDs() []ID {
	var ids []ID
	for _, m := range s.Membership.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

func sortedIDs(ids []ID) []ID { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// NeedsAnnouncement reports whether the removal of a member has to be on record before etcd is
// told: without it no majority of the recorded voters is left to tell afterwards that it was meant.
func NeedsAnnouncement(s State, id ID) bool {
	if m, listed := s.Membership.byID(id); listed {
		ordinal, _ := s.OrdinalOf(m)
		if recorded, _ := s.Record.Member(ordinal); recorded.Leaving {
			return false
		}
	}
	voters, standing := 0, 0
	for _, m := range s.Record.Members {
		if m.Mode == Joining {
			continue
		}
		voters++
		member, found := s.listed()[m.Ordinal]
		if found && member.ID != id && (m.ID == 0 || m.ID == member.ID) {
			standing++
		}
	}
	return standing < Quorum(voters)
}

// AnnouncedRecord is the record that says which member etcd is about to be told to remove.
func AnnouncedRecord(s State, id ID) (Record, error) {
	m, listed := s.Membership.byID(id)
	ordinal, ours := s.OrdinalOf(m)
	recorded, found := s.Record.Member(ordinal)
	if !listed || !ours || !found {
		return Record{}, fmt.Errorf("put the removal of member %s on record: it is not on record itself", id)
	}
	recorded.Leaving = true
	return s.Record.With(recorded), nil
}
