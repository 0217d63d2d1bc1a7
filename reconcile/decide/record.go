package decide

import (
	"cmp"
	"slices"
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

// Replicas is how many replicas Kubernetes has to run for the recorded members: one more than the highest ordinal.
func (r Record) Replicas() int {
	n := 0
	for _, m := range r.Members {
		n = max(n, m.Ordinal+1)
	}
	return n
}

// with returns the record with that member in it, in place of an older entry of the same ordinal.
func (r Record) with(member RecordedMember) Record {
	members := slices.DeleteFunc(slices.Clone(r.Members), func(m RecordedMember) bool { return m.Ordinal == member.Ordinal })
	members = append(members, member)
	slices.SortFunc(members, func(a, b RecordedMember) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	r.Members = members
	return r
}

// FoundingRecord is the record of a cluster that is about to be founded with n members.
func FoundingRecord(token string, n int) Record {
	r := Record{Token: token}
	for ordinal := range n {
		r = r.with(RecordedMember{Ordinal: ordinal, Mode: Founding})
	}
	return r
}

// StandingRecord is the record that the objects of a formed cluster must carry as things stand: the one that is
// there, or, where it is lost, what volumes and etcd prove. A member whose record is lost is sealed: if it has data,
// it needs no more to start; if it has none, it must not start.
func StandingRecord(s State, freshToken string) Record {
	r := s.Record
	if !s.recorded() {
		r.Token = s.tokenOfVolumes(freshToken)
		for _, replica := range s.Replicas {
			if replica.VolumeUID != "" {
				r = r.with(RecordedMember{Ordinal: replica.Ordinal, Mode: Sealed})
			}
		}
	}
	if r.ClusterID == 0 && !s.founding() {
		r.ClusterID = s.ReportedClusterID
	}
	return r
}

// SealedRecord is the record after action a: its members sealed with the IDs and volumes that s shows.
func SealedRecord(s State, a Seal, freshToken string) Record {
	r := StandingRecord(s, freshToken)
	r.ClusterID = a.ClusterID
	for _, m := range s.Membership.Members {
		ordinal, ours := s.Ordinal(m.Name)
		if !ours || !m.Started || !a.Members.Has(ordinal) {
			continue
		}
		sealed := RecordedMember{Ordinal: ordinal, Mode: Sealed}
		if m.Answers {
			sealed.ID, sealed.VolumeUID = m.ID, s.Replica(ordinal).VolumeUID
		}
		r = r.with(sealed)
	}
	return r
}

// founding reports whether the record is that of a cluster on its way to formation.
func (s State) founding() bool { return s.recorded() && s.Record.ClusterID == 0 }

func (s State) tokenOfVolumes(otherwise string) string {
	for _, r := range s.replicasInOrder() {
		if r.VolumeToken != "" {
			return r.VolumeToken
		}
	}
	return otherwise
}
