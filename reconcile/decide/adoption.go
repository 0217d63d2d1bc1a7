package decide

import (
	"fmt"
	"slices"
	"strings"
)

// AdoptionOrder is a running etcd cluster that the replicas join, so that they can take over from its members.
type AdoptionOrder struct {
	// ClusterID is the ID of the cluster to adopt. It is zero if no adoption is declared.
	ClusterID ID `json:"clusterID,omitempty"`
	// Endpoints are the client URLs of its members.
	Endpoints []string `json:"endpoints,omitempty"`
	// Release are the guests that Quorate may remove from etcd.
	Release []ID `json:"release,omitempty"`
	// Abandon is true if the replicas must leave the adopted cluster again.
	Abandon bool `json:"abandon,omitempty"`
	// PeerURL is the peer URL of the replica with ordinal 0. The URLs of other replicas differ only in the pod's name.
	PeerURL string `json:"peerURL,omitempty"`
}

func (o AdoptionOrder) declared() bool { return o.ClusterID != 0 }

func (o AdoptionOrder) releases(id ID) bool { return slices.Contains(o.Release, id) }

// MaxGuests is the maximum number of members of a cluster to adopt. Until the first of them is removed, there are twice
// as many voters, and every write waits for a majority of them.
const MaxGuests = 5

// adoptedRecord returns the initial record of a cluster whose replicas will join the source's members. It names a
// cluster ID from the beginning, so that the replicas can never bootstrap a second cluster.
func (s State) adoptedRecord(token string) Record {
	id := s.Declared.Adoption.ClusterID
	joined := s
	joined.Membership = s.Source
	return Record{Token: token, ClusterID: id, Adopted: id, Guests: joined.foreign()}
}

// BeginsAdoption reports whether an adoption is declared, and nothing of this cluster exists but objects without
// replicas.
func (s State) BeginsAdoption() bool {
	order := s.Declared.Adoption
	other := s.ReportedClusterID != 0 && s.ReportedClusterID != order.ClusterID
	exists := s.Record.Token != "" || s.Membership.ClusterID != 0 || s.anyReplica(Replica.remains)
	return order.declared() && !other && !exists
}

// AdoptedRecord returns the record that the Bootstrap action of an adoption writes.
func AdoptedRecord(s State, token string) Record { return s.UnderCA(s.adoptedRecord(token)) }

// adoptedID returns the ID of the cluster that the replicas have joined, for use if the record and the status are lost.
// It returns zero unless git declares the adoption of the cluster that returned etcd's list.
func (s State) adoptedID() ID {
	if id := s.Declared.Adoption.ClusterID; s.Membership.Known && s.Membership.ClusterID == id {
		return id
	}
	return 0
}

// takeUpGuests adds the guests to a recreated record, which does not show yet that the cluster was adopted.
// While the replicas must leave, it does not: the members that etcd lists may have joined since.
func (s State) takeUpGuests(r Record) Record {
	order := s.Declared.Adoption
	lacksThem := r.Adopted == 0 && !r.NamesMembers()
	if order.declared() && order.ClusterID == r.ClusterID && lacksThem && !order.Abandon {
		r.Adopted, r.Guests = r.ClusterID, s.foreign()
	}
	return r
}

// followGuests removes guests from the record if they have left etcd's list and git releases them.
func (s State) followGuests(r Record) Record {
	left := func(id ID) bool {
		_, listed := s.Membership.byID(id)
		return !listed && s.Declared.Adoption.releases(id)
	}
	if slices.ContainsFunc(r.Guests, left) {
		r.Guests = slices.DeleteFunc(slices.Clone(r.Guests), left)
	}
	if len(r.Guests) == 0 {
		r.Guests = nil
	}
	return r
}

// Hosts reports whether the member is recorded as a guest: a member of an adopted cluster that Quorate does not manage.
func (r Record) Hosts(id ID) bool { return slices.Contains(r.Guests, id) }

// foreign returns the IDs of the listed members that are not replicas, in ascending order.
func (s State) foreign() []ID {
	var ids []ID
	for _, m := range s.Membership.Members {
		if _, ours := s.OrdinalOf(m); !ours {
			ids = append(ids, m.ID)
		}
	}
	return sortedIDs(ids)
}

// isForeign reports whether a member is not a replica, even if its name is a replica's name. The names of members of an
// adopted cluster are arbitrary, so a member without a record is identified by its peer URL.
func (s State) isForeign(m Member) bool {
	if s.Record.Hosts(m.ID) {
		return !s.atOurURL(m)
	}
	recorded := slices.ContainsFunc(s.Record.Members, func(r RecordedMember) bool { return r.ID == m.ID })
	ordinary := !s.Declared.Adoption.declared() || s.Record.Adopted == 0 && s.Record.NamesMembers()
	return !recorded && (!ordinary || s.hasNamesake(m)) && !s.atOurURL(m)
}

// hasNamesake reports whether another member has the same name and the peer URL of a replica.
func (s State) hasNamesake(m Member) bool {
	return m.Name != "" && slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		return other.ID != m.ID && other.Name == m.Name && s.atOurURL(other)
	})
}

// NamesMembers reports whether the record contains the ID of a member. A record that was recreated without etcd does
// not.
func (r Record) NamesMembers() bool {
	return slices.ContainsFunc(r.Members, func(m RecordedMember) bool { return m.ID != 0 })
}

// atOurURL reports whether a member has the peer URL of a replica.
func (s State) atOurURL(m Member) bool {
	_, address, _ := strings.Cut(m.PeerURL, "://")
	pod, _, _ := strings.Cut(address, ".")
	ordinal, ours := s.Ordinal(pod)
	return ours && s.Declared.Adoption.PeerURL != "" && m.PeerURL == s.peerURLOf(ordinal)
}

// peerURLOf returns the peer URL of a replica of a cluster that adopts another.
func (s State) peerURLOf(ordinal int) string {
	return strings.Replace(s.Declared.Adoption.PeerURL, "//"+s.ReplicaName(0)+".", "//"+s.ReplicaName(ordinal)+".", 1)
}

// adopting reports whether guests are recorded.
func (s State) adopting() bool { return len(s.Record.Guests) > 0 }

// mayHaveGuests reports whether guests are recorded, or may be missing from a record that was lost.
func (s State) mayHaveGuests() bool {
	order := s.Declared.Adoption
	other := s.Record.ClusterID != 0 && s.Record.ClusterID != order.ClusterID || s.ReportedClusterID != 0 &&
		s.ReportedClusterID != order.ClusterID
	lost := s.Record.Adopted == 0 && !s.Record.NamesMembers() && !s.founding() && !s.Record.Restoring()
	return s.adopting() || order.declared() && !other && lost
}

// lacksGuests reports whether the record of the guests was lost, and they are not recorded again because the replicas
// must leave.
func (s State) lacksGuests() bool {
	return s.mayHaveGuests() && s.Record.Adopted == 0 && s.Declared.Adoption.Abandon
}

// abandons reports whether the replicas must leave the adopted cluster. That is possible only while the guests alone
// have quorum, and none has left unexpectedly.
func (s State) abandons() bool {
	if !s.Declared.Adoption.Abandon || !s.adopting() || !s.Membership.Known || len(s.vanishedGuests()) > 0 {
		return false
	}
	remaining := Membership{Members: s.Guests()}
	return len(remaining.Voters()) > 0 && remaining.HasQuorum()
}

// wanted returns the number of replicas that should be members.
func (s State) wanted() int {
	if s.abandons() {
		return 0
	}
	return s.Declared.Replicas
}

// guestDifferences describes how the guests of the required record differ from the recorded guests.
func (s State) guestDifferences(required Record) []string {
	var facts []string
	for _, id := range s.Record.Guests {
		if !required.Hosts(id) {
			facts = append(facts, fmt.Sprintf("etcd no longer lists guest %s", id))
		}
	}
	for _, id := range required.Guests {
		if !s.Record.Hosts(id) {
			facts = append(facts, fmt.Sprintf("etcd lists guest %s, which is not recorded", id))
		}
	}
	return facts
}

// ailmentOfGuest is like ailment, but for a guest. Its pod and volume are unknown.
func (m Member) ailmentOfGuest() string {
	switch {
	case !m.Answers:
		return "is not responding" + inParentheses(m.Why)
	case m.Learner:
		return "is a learner"
	case !m.Started:
		return "has not published its client URLs yet"
	}
	return m.Disagrees
}

// Guests returns the listed guests in order.
func (s State) Guests() []Member {
	return slices.DeleteFunc(slices.Clone(s.MembersInOrder()), func(m Member) bool { return !s.Record.Hosts(m.ID) })
}

// ownVoters returns the replicas that vote.
func (s State) ownVoters() []Member {
	return slices.DeleteFunc(slices.Clone(s.Membership.Voters()), func(m Member) bool {
		_, ours := s.OrdinalOf(m)
		return !ours
	})
}

// describeGuests returns the number of voters, and how many of them are guests.
func (s State) describeGuests() string {
	voters := s.Membership.Voters()
	return fmt.Sprintf("%s, including %s", plural(len(voters), "voter", "voters"),
		plural(len(s.Guests()), "guest", "guests"))
}

// describeGuest returns a guest's name and ID. Guests may have equal names.
func (m Member) describeGuest() string {
	return fmt.Sprintf("guest %s (%s)", orUnknown(m.Name), m.ID)
}
