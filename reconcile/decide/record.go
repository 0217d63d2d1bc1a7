package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/etcdversion"
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

// Replicas is how many replicas Kubernetes has to run for the recorded members: one more than the
// highest ordinal.
func (r Record) Replicas() int {
	n := 0
	for _, m := range r.Members {
		n = max(n, m.Ordinal+1)
	}
	return n
}

// With returns the record with that member in it, in place of an older entry of the same ordinal.
func (r Record) With(member RecordedMember) Record {
	r.Members = withoutMember(r.Members, member.Ordinal)
	r.Members = append(r.Members, member)
	slices.SortFunc(r.Members, func(a, b RecordedMember) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return r
}

// WithRemoved returns the record with that slot as one whose member is gone.
func (r Record) WithRemoved(gone RemovedMember) Record {
	r.Members = withoutMember(r.Members, gone.Ordinal)
	r.Removed = slices.DeleteFunc(slices.Clone(r.Removed),
		func(m RemovedMember) bool { return m.Ordinal == gone.Ordinal })
	r.Removed = append(r.Removed, gone)
	slices.SortFunc(r.Removed, func(a, b RemovedMember) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return r
}

// replacements returns how often the member of a slot was replaced lately.
func (r Record) replacements(ordinal int) Replacements {
	for _, replaced := range r.Replaced {
		if replaced.Ordinal == ordinal {
			return replaced
		}
	}
	return Replacements{Ordinal: ordinal}
}

// countReplacement returns the record with one more replacement in a slot, and without those that
// are too long ago to matter.
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

// Equal reports whether two records say the same.
func (r Record) Equal(other Record) bool {
	return r.Token == other.Token && r.ClusterID == other.ClusterID && r.LogVersion == other.LogVersion &&
		r.CA == other.CA && r.JoinedTogether == other.JoinedTogether &&
		r.RestoredFrom == other.RestoredFrom && r.Restored == other.Restored && r.Uncompared == other.Uncompared &&
		r.Recovery == other.Recovery && r.VoidRecovery == other.VoidRecovery &&
		slices.Equal(r.Members, other.Members) && slices.Equal(r.Removed, other.Removed) &&
		slices.Equal(r.Confirmed, other.Confirmed) &&
		slices.EqualFunc(r.Replaced, other.Replaced, func(a, b Replacements) bool {
			return a.Ordinal == b.Ordinal && a.Times == b.Times && a.Last.Equal(b.Last)
		})
}

// FoundingRecord is the record of a cluster that is about to be founded with n members.
func FoundingRecord(token string, n int) Record {
	r := Record{Token: token}
	for ordinal := range n {
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Founding})
	}
	return r
}

// StandingRecord is the record that the objects must carry as things stand, whatever the action
// that applies them: the record that is there; where the cluster has never formed and there is
// none, that of its founding, with freshToken; where it has formed, what etcd, or else pods and
// volumes, prove. A member whose record is lost is sealed: if it has data, it needs no more to
// start; if it has none, it must not start. It is without members if nothing is left to run.
func StandingRecord(s State, freshToken string) Record {
	return s.UnderCA(s.standing(freshToken))
}

func (s State) standing(freshToken string) Record {
	switch {
	case s.recorded():
		return s.follow(s.voidRecovery(s.keepLost(s.takeUpRecovery(s.catchUp(s.Record)))))
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
		ClusterID: cmp.Or(s.Record.ClusterID, s.ReportedClusterID),
		// Where the token allows it, nothing says that two have not.
		JoinedTogether: s.Record.JoinedTogether || strings.HasSuffix(token, together),
	}
	if job := s.Recovery.Job; job != nil && !s.Membership.Known {
		r.ClusterID = cmp.Or(r.ClusterID, job.ClusterID)
	}
	for _, ordinal := range s.remainingOrdinals() {
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Sealed})
	}
	return s.follow(s.voidRecovery(s.keepLost(s.takeUpRecovery(r))))
}

// catchUp makes good what a record has lost to the status: one that knows no cluster ID while the
// status does has been put back to what it was before formation, and no member of a formed cluster
// may be founded.
func (s State) catchUp(r Record) Record {
	if r.ClusterID != 0 || s.ReportedClusterID == 0 {
		return r
	}
	r.ClusterID, r.JoinedTogether = s.ReportedClusterID, r.JoinedTogether || strings.HasSuffix(r.Token, together)
	for _, m := range r.Members {
		m.Mode = Sealed
		r = r.With(m)
	}
	if s.Membership.Known {
		return r
	}
	for _, ordinal := range s.remainingOrdinals() { // such a record knows no member that came later
		r = r.With(RecordedMember{Ordinal: ordinal, Mode: Sealed})
	}
	return r
}

// remainingOrdinals are the slots that hold a member, as far as can be told without a record: those
// that etcd lists, or, while it gives no list, those with a pod or a volume.
func (s State) remainingOrdinals() []int {
	var ordinals []int
	if s.Membership.Known {
		for _, m := range s.Membership.Members {
			if ordinal, ours := s.Ordinal(m.Name); ours {
				ordinals = append(ordinals, ordinal)
			}
		}
		return ordinals
	}
	for _, r := range s.Replicas {
		if r.remains() && !s.leftOfLost(r) {
			ordinals = append(ordinals, r.Ordinal)
		}
	}
	return ordinals
}

// SealedRecord is the record after action a: its members sealed with the IDs and volumes that s
// shows.
func SealedRecord(s State, a Seal, freshToken string) Record {
	r := StandingRecord(s, freshToken)
	r.ClusterID, r.Restored = a.ClusterID, RestoredData{}
	if v, err := etcdversion.Parse(s.Objects.RunsVersion); err == nil && s.founding() {
		r.LogVersion = v.MajorMinor().String()
	}
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.Ordinal(m.Name)
		if !ours || !m.Started || !a.Members.Has(ordinal) || s.listed()[ordinal].ID != m.ID {
			continue
		}
		sealed := RecordedMember{Ordinal: ordinal, Mode: Sealed}
		before, _ := r.Member(ordinal)
		switch {
		case m.Answers:
			sealed.ID, sealed.VolumeUID = m.ID, s.Replica(ordinal).VolumeUID
		case before.Mode == Sealed:
			sealed = before // silent by now, so nothing else is proven
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
