package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/internal/etcdversion"
)

// Member returns the recorded member with that ordinal.
func (r Record) Member(ordinal int) (RecordedMember, bool) {
	for _, m := range r.Members {
		if m.Ordinal == ordinal {
			return m, true
		}
	}
	return RecordedMember{}, false
}

// Replicas returns how many replicas Kubernetes must run for the recorded members: the highest ordinal plus one.
func (r Record) Replicas() int {
	n := 0
	for _, m := range r.Members {
		n = max(n, m.Ordinal+1)
	}
	return n
}

// With returns the record with that member, replacing any entry with the same ordinal.
func (r Record) With(member RecordedMember) Record {
	r.Members = withoutMember(r.Members, member.Ordinal)
	r.Members = append(r.Members, member)
	slices.SortFunc(r.Members, func(a, b RecordedMember) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return r
}

// WithRemoved returns the record with the slot marked as having lost its member.
func (r Record) WithRemoved(gone RemovedMember) Record {
	r.Members = withoutMember(r.Members, gone.Ordinal)
	r.Removed = slices.DeleteFunc(slices.Clone(r.Removed),
		func(m RemovedMember) bool { return m.Ordinal == gone.Ordinal })
	r.Removed = append(r.Removed, gone)
	slices.SortFunc(r.Removed, func(a, b RemovedMember) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return r
}

// replacements returns how often the member of a slot was replaced recently.
func (r Record) replacements(ordinal int) Replacements {
	for _, replaced := range r.Replaced {
		if replaced.Ordinal == ordinal {
			return replaced
		}
	}
	return Replacements{Ordinal: ordinal}
}

// countReplacement returns the record with one more replacement in a slot, without replacements that are too old to
// matter.
func (r Record) countReplacement(ordinal int, now time.Time) Record {
	old := func(replaced Replacements) bool { return now.Sub(replaced.Last) >= replacementMemory }
	kept := slices.DeleteFunc(slices.Clone(r.Replaced), old)
	r.Replaced = kept
	count := r.replacements(ordinal)
	count.Times, count.Last = count.Times+1, now.UTC().Truncate(time.Second)
	r.Replaced = slices.DeleteFunc(kept, func(replaced Replacements) bool { return replaced.Ordinal == ordinal })
	r.Replaced = append(r.Replaced, count)
	slices.SortFunc(r.Replaced, func(a, b Replacements) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return r
}

func withoutMember(members []RecordedMember, ordinal int) []RecordedMember {
	return slices.DeleteFunc(slices.Clone(members), func(m RecordedMember) bool { return m.Ordinal == ordinal })
}

// Equal reports whether two records are equal.
func (r Record) Equal(other Record) bool {
	return r.Token == other.Token && r.ClusterID == other.ClusterID && r.LogVersion == other.LogVersion &&
		r.CA == other.CA && r.JoinedTogether == other.JoinedTogether &&
		r.RestoredFrom == other.RestoredFrom && r.Restored == other.Restored && r.Uncompared == other.Uncompared &&
		r.Recovery == other.Recovery && r.VoidRecovery == other.VoidRecovery &&
		r.VoidConfirmation == other.VoidConfirmation && r.Adopted == other.Adopted &&
		slices.Equal(r.Guests, other.Guests) &&
		slices.Equal(r.Members, other.Members) && slices.Equal(r.Removed, other.Removed) &&
		slices.EqualFunc(r.Replaced, other.Replaced, func(a, b Replacements) bool {
			return a.Ordinal == b.Ordinal && a.Times == b.Times && a.Last.Equal(b.Last)
		})
}

// FoundingRecord returns the record of a cluster that is about to be bootstrapped with n members.
func FoundingRecord(token string, n int) Record {
	r := Record{Token: token}
	for ordinal := range n {
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Founding})
	}
	return r
}

// RequiredRecord returns the record that the objects must carry in the current state, regardless of the action that
// applies them:
//   - If a record exists, it returns that record, brought up to date.
//   - If the record is missing and the cluster has never formed, it returns the bootstrap record, with freshToken.
//   - If the record is missing and the cluster has formed, it returns a record of what etcd, or else the pods and
//     volumes, prove.
//
// A member whose record is lost is sealed: with data, it can start; without data, it must not start. The record has no
// members if nothing is left to run.
func RequiredRecord(s State, freshToken string) Record {
	return s.UnderCA(s.requiredRecord(freshToken))
}

func (s State) requiredRecord(freshToken string) Record {
	switch {
	case s.BeginsAdoption():
		r := s.adoptedRecord(cmp.Or(s.Objects.RunsToken, freshToken))
		r.CA = s.Record.CA
		return r
	case !s.recordLost():
		return s.follow(s.voidRecovery(s.keepLost(s.takeUpRecovery(s.catchUp(s.complete(s.Record))))))
	case !s.Formed():
		r := s.firstRecord(cmp.Or(s.Record.Token, freshToken))
		r.CA, r.JoinedTogether = s.Record.CA, s.Record.JoinedTogether
		return r
	}
	token := cmp.Or(s.Record.Token, s.Objects.RunsToken, s.tokenOfVolumes(), freshToken)
	if s.isBeingRestored() {
		r := RestoringRecord(token)
		r.CA, r.JoinedTogether = s.Record.CA, s.Record.JoinedTogether
		return r
	}
	r := Record{
		CA:        s.Record.CA,
		Token:     token,
		ClusterID: cmp.Or(s.Record.ClusterID, s.ReportedClusterID, s.adoptedID()),
		// If the token allows it, two learners may have joined together.
		JoinedTogether: s.Record.JoinedTogether || strings.HasSuffix(token, together),
	}
	if job := s.Recovery.Job; job != nil && !s.Membership.MayServe() && len(s.usedByOthers(job.ClusterID)) == 0 {
		r.ClusterID = cmp.Or(r.ClusterID, job.ClusterID)
	}
	for _, ordinal := range s.remainingOrdinals() {
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Sealed})
	}
	return s.follow(s.voidRecovery(s.keepLost(s.takeUpRecovery(r))))
}

// catchUp restores the parts that the record has lost compared with the status, or with the claims if git requests
// recovery. If the status has a cluster ID but the record does not, the record was reset to its state before formation,
// and members of a formed cluster must not be bootstrapped.
func (s State) catchUp(r Record) Record {
	id := cmp.Or(s.ReportedClusterID, s.recoverableCluster())
	if r.ClusterID != 0 || id == 0 {
		return r
	}
	r.ClusterID, r.JoinedTogether = id, r.JoinedTogether || strings.HasSuffix(r.Token, together)
	for _, m := range r.Members {
		m.Mode = Sealed
		r = r.With(m)
	}
	if s.Membership.Known {
		return r
	}
	for _, ordinal := range s.remainingOrdinals() { // such a record does not contain members added later
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Sealed})
	}
	return r
}

// complete adds the members that were not observed by the pass that recreated a lost record. Until etcd returns a list,
// such a record proves only that its members may start with their data.
func (s State) complete(r Record) Record {
	proven := slices.ContainsFunc(r.Members, func(m RecordedMember) bool {
		return m.Mode != Sealed || m.ID != 0 || m.VolumeUID != ""
	})
	if proven || s.Membership.Known || r.Recovering() {
		return r
	}
	for _, ordinal := range s.remainingOrdinals() {
		_, recorded := r.Member(ordinal)
		_, removed := r.removed(ordinal)
		slot := s.Replica(ordinal)
		used := slot.LastUse.ClusterID != 0 || slot.ClusterID != 0 // unlike slots that kubectl scale creates
		if !recorded && !removed && used {
			r = r.With(RecordedMember{Ordinal: ordinal, Mode: Sealed})
		}
	}
	return r
}

// remainingOrdinals returns the slots that hold a member, as far as known without a record: the slots that etcd lists
// or, without a list, the slots with a pod or a volume.
func (s State) remainingOrdinals() []int {
	var ordinals []int
	if s.Membership.Known {
		for _, m := range s.Membership.Members {
			if ordinal, ours := s.namedOrdinal(m); ours {
				ordinals = append(ordinals, ordinal)
			}
		}
		return ordinals
	}
	for _, r := range s.Replicas {
		if r.remains() && !s.leftOfLost(r) && !s.belongsElsewhere(r) {
			ordinals = append(ordinals, r.Ordinal)
		}
	}
	return ordinals
}

// belongsElsewhere reports whether a claim was last used by a different cluster, and its pod does not contradict this:
// a lost cluster's claim may have come back without its mark. The volume from which this cluster is being recovered is
// excluded, because it still names the lost cluster.
func (s State) belongsElsewhere(r Replica) bool {
	known := cmp.Or(s.Record.ClusterID, s.ReportedClusterID)
	job := s.Recovery.Job
	recovers := r.VolumeUID == s.Record.Recovery.VolumeUID || job != nil && job.VolumeUID == r.VolumeUID
	return known != 0 && r.otherUser(known) != 0 && r.ClusterID != known && !recovers
}

// SealedRecord returns the record after action a, with its members sealed with the IDs and volumes in s.
func SealedRecord(s State, a Seal, freshToken string) Record {
	r := RequiredRecord(s, freshToken)
	r.ClusterID, r.Restored = a.ClusterID, RestoredData{}
	r = s.takeUpGuests(r)
	if v, err := etcdversion.Parse(s.Objects.RunsVersion); err == nil && s.founding() {
		r.LogVersion = v.MajorMinor().String()
	}
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.namedOrdinal(m)
		if !ours || !m.Started || !a.Members.Has(ordinal) || s.listed()[ordinal].ID != m.ID {
			continue
		}
		before, _ := r.Member(ordinal)
		// A voter never becomes a learner. A record that was recreated does not show whether the member was a voter.
		learner := m.Learner && (before.Mode != Sealed || before.Learner || before.ID == 0)
		sealed := RecordedMember{Ordinal: ordinal, Mode: Sealed, Learner: learner}
		switch {
		case m.Answers:
			sealed.ID, sealed.VolumeUID = m.ID, s.Replica(ordinal).VolumeUID
		case before.Mode == Sealed:
			sealed = before // no longer responding, so nothing else is proven
		}
		r = r.With(sealed)
	}
	return r
}

func (s State) tokenOfVolumes() string {
	for _, r := range s.replicasInOrder() {
		if r.VolumeToken != "" {
			return r.VolumeToken
		}
	}
	return ""
}
