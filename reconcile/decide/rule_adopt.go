package decide

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/etcdversion"
)

// adopt begins an adoption: it records the members of the source and creates all objects, but no replicas. From then
// on, replicas join as in any cluster.
func adopt(s State) (Decision, bool) {
	order := s.Declared.Adoption
	if !s.BeginsAdoption() || !s.toRun() || s.Declared.RenamedFrom != "" {
		return Decision{}, false
	}
	switch {
	case order.Abandon:
		return Decision{Verdict: Done, Message: fmt.Sprintf("cluster %s is not adopted: spec.adopt.abandon is set",
			order.ClusterID)}, true
	case len(s.Objects.Irreplaceable) > 0:
		return block("%s", sentence(s.Objects.Irreplaceable))
	case !s.Source.Known:
		return wait(recheck, "the cluster to adopt does not return a member list%s; nothing is changed until it does",
			because(s.Source.Why))
	case s.Source.ClusterID != order.ClusterID:
		return block("the endpoints in spec.adopt belong to cluster %s, but spec.adopt names cluster %s",
			s.Source.ClusterID, order.ClusterID)
	}
	if len(order.Release) > 0 {
		return block("remove spec.adopt.release: guests can be released once the replicas have joined cluster %s",
			order.ClusterID)
	}
	if unfit := s.unfit(); len(unfit) > 0 {
		return block("cluster %s cannot be adopted yet: %s", order.ClusterID, strings.Join(unfit, "; "))
	}
	return act(Bootstrap{Adopts: order.ClusterID}, "adopting cluster %s: its %s become guests, and %s will join them",
		order.ClusterID, plural(len(s.Source.Members), "member", "members"),
		plural(s.Declared.Replicas, "replica", "replicas"))
}

// MayAdopt reports whether the source could be adopted if its members returned equal hashes. To compute a hash, a
// member scans its whole database, so the members of a source that cannot be adopted are not asked for hashes.
func (s State) MayAdopt() bool {
	s.Source.Members = slices.Clone(s.Source.Members)
	for i := range s.Source.Members {
		s.Source.Members[i].Hash = Hash{Revision: 1}
	}
	d, _ := adopt(s)
	return d.Verdict == Act
}

// unfit returns all reasons why the source cannot be adopted now.
func (s State) unfit() []string {
	then := s
	then.Record, then.Membership = s.adoptedRecord(""), s.Source
	var facts []string
	guests := then.Guests()
	for _, m := range guests {
		if trouble := then.Explain(m); trouble != "" {
			facts = append(facts, m.describeGuest()+" "+trouble)
		}
	}
	for _, m := range then.Membership.Members {
		if _, ours := then.OrdinalOf(m); ours {
			facts = append(facts, fmt.Sprintf("it lists %s, a replica of this cluster, which has no volume: remove "+
				"member %s with etcdctl member remove", then.nameOf(m), m.ID))
		}
	}
	ours := scheme(s.Declared.Adoption.PeerURL)
	for _, m := range guests {
		reachable := func(url string) bool { return scheme(url) == ours }
		if !slices.ContainsFunc(append([]string{m.PeerURL}, m.MorePeerURLs...), reachable) {
			facts = append(facts, fmt.Sprintf("%s has the peer URL %s, but the peer URLs of replicas begin with %s",
				m.describeGuest(), m.PeerURL, ours))
		}
	}
	facts = append(facts, then.doubts()...)
	facts = append(facts, then.unfitAlarms()...)
	facts = append(facts, then.unfitData(guests)...)
	if n := len(guests); n > MaxGuests {
		facts = append(facts, fmt.Sprintf("it has %d members, and at most %d can be adopted: copy it with "+
			"spec.restore.from.etcd instead", n, MaxGuests))
	} else if s.Declared.Replicas < n {
		facts = append(facts, fmt.Sprintf("declare at least %s; once the last guest has left, you can declare fewer",
			plural(n, "replica", "replicas")))
	}
	v, err := etcdversion.Parse(s.Declared.Version)
	if ours == "https://" && err == nil && !v.AtLeast(RestrictsPeerNames) {
		facts = append(facts, fmt.Sprintf("with TLS, declare etcd %s or newer: older members cannot restrict the "+
			"names in peer certificates", RestrictsPeerNames))
	}
	if s.Source.Downgrade != "" {
		facts = append(facts, "a downgrade to etcd "+s.Source.Downgrade+" is in progress")
	}
	unhashed := slices.ContainsFunc(guests, func(m Member) bool { return !m.Hash.Known() })
	if len(facts) == 0 && unhashed { // otherwise, the members were not asked for hashes
		facts = append(facts, "not all members returned a hash of their data")
	}
	return facts
}

// RestrictsPeerNames is the oldest etcd version whose configuration file can restrict the names in peer certificates.
var RestrictsPeerNames = etcdversion.Must("3.5.15")

// scheme returns the scheme of a URL, including "://".
func scheme(url string) string {
	before, _, _ := strings.Cut(url, "//")
	return before + "//"
}

// unfitAlarms returns the alarms of members that the source no longer lists, except alarms that put its data in doubt.
func (s State) unfitAlarms() []string {
	var facts []string
	for _, a := range s.Membership.staleAlarms() {
		if a.Kind != AlarmCorrupt {
			facts = append(facts, s.describeAlarm(a)+" is active")
		}
	}
	return facts
}

// quotaReserve is the part of the declared quota that must be free once a replica holds the largest database: a fifth.
// etcd rejects all writes as soon as one member reaches its quota.
const quotaReserve = 5

// unfitData returns the reasons why replicas could not hold the guests' data: their version, their size, and hashes
// that were not returned.
func (s State) unfitData(guests []Member) []string {
	var facts []string
	largest := int64(0)
	for _, m := range guests {
		largest = max(largest, m.DBSize)
		if !m.Answers {
			continue
		}
		declared := minorOf(s.Declared.Version)
		if v, err := etcdversion.ParseRunning(m.Version); err != nil || v.MajorMinor() != declared {
			facts = append(facts, fmt.Sprintf("%s runs etcd %s, but git declares %s: declare a release of the same "+
				"minor version, and upgrade once the last guest has left", m.describeGuest(), orUnknown(m.Version),
				s.Declared.Version))
		}
		if m.HashWhy != "" {
			facts = append(facts, fmt.Sprintf("%s did not return a hash of its data: %s", m.describeGuest(),
				m.HashWhy))
		}
	}
	if quota := s.Declared.Quota; quota > 0 && largest > quota/quotaReserve*(quotaReserve-1) {
		facts = append(facts, fmt.Sprintf("its database uses %dMi, and the declared etcd.quota is %dMi: declare at "+
			"least %dMi", largest>>20, quota>>20, largest>>20/(quotaReserve-1)*quotaReserve+1))
	}
	return facts
}

// because returns ": why", or "" if why is empty.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// guestLost blocks if a guest has left etcd's list although git does not release it, because something other than
// Quorate removes members. Until the cause is clear, replicas do not join or take over.
func guestLost(s State) (Decision, bool) {
	if gone := s.vanishedGuests(); s.Membership.Known && len(gone) > 0 {
		return blockForVanished(gone)
	}
	return Decision{}, false
}

// vanishedGuests returns the IDs of the guests that etcd does not list and git does not release.
func (s State) vanishedGuests() []string {
	var gone []string
	for _, id := range s.Record.Guests {
		if _, listed := s.Membership.byID(id); !listed && !s.Declared.Adoption.releases(id) {
			gone = append(gone, id.String())
		}
	}
	return gone
}

func blockForVanished(gone []string) (Decision, bool) {
	return block("guest %s left etcd's member list, but git does not release it. Stop the tool that manages the "+
		"adopted cluster. If the removal was intended, add the ID to spec.adopt.release", Enumerate(gone))
}

// releaseGuest removes a guest that git releases. An unresponsive guest may leave as soon as the others have quorum. A
// healthy guest leaves only once every replica is a healthy voter, a replica leads, and the replicas alone will have
// quorum: from then on, the remaining guests are not needed.
func releaseGuest(s State) (Decision, bool) {
	if !s.Membership.Known || !s.toRun() || s.Declared.Adoption.Abandon {
		return Decision{}, false
	}
	var healthy []Member
	for _, m := range s.Guests() {
		switch {
		case !s.Declared.Adoption.releases(m.ID):
		case m.Answers:
			healthy = append(healthy, m)
		case !s.copyCounts(m) && s.Membership.Without(m.ID).HasQuorum():
			return s.removal(ruleReleaseGuest, RemoveMember{ID: m.ID, Name: s.nameOf(m)},
				"%s does not respond, and git releases it: removing it; %s", m.describeGuest(), s.describeResponding())
		}
	}
	_, unfilled := s.freeOrdinal()
	if len(healthy) == 0 || unfilled || !s.settled() {
		return Decision{}, false
	}
	return s.releaseHealthy(healthy[0])
}

func (s State) releaseHealthy(m Member) (Decision, bool) {
	own := len(s.ownVoters())
	if remaining := len(s.Membership.Without(m.ID).Voters()); own < Quorum(remaining) {
		return block("git releases %s, but the replicas would not have quorum without the guests: %d of %d voters. "+
			"Declare at least %s", m.describeGuest(), own, remaining, plural(len(s.Guests()), "replica", "replicas"))
	}
	leader := s.leader()
	if leader.ID == 0 {
		return wait(recheckSettling, "git releases %s: waiting until a member reports the leader", m.describeGuest())
	}
	if _, ours := s.OrdinalOf(leader); !ours {
		return s.transferLeadership(leader, func(to Member) bool { return !s.isForeign(to) },
			"git releases %s, and a guest is the leader", m.describeGuest())
	}
	last := ""
	if len(s.Guests()) == 1 {
		last = ", the last guest, so that the adoption can no longer be abandoned"
	}
	return s.removal(ruleReleaseGuest, RemoveMember{ID: m.ID, Name: s.nameOf(m)}, "git releases %s: removing it%s; %s",
		m.describeGuest(), last, s.describeResponding())
}

// holding reports that the replicas and the guests are one cluster. Nothing is changed until git releases guests, so
// that clients can move.
func holding(s State) (Decision, bool) {
	if !s.adopting() || !s.Membership.Known {
		return Decision{}, false
	}
	switch {
	case s.adoptionTakenBack():
		return block("%s, but %s", s.describeGuests(), s.declareAdoptionAgain())
	case s.Declared.Adoption.Abandon && len(s.Record.Members) > 0:
		return block("%s: the replicas cannot leave cluster %s yet, because the guests alone do not have quorum",
			s.describeGuests(), s.Record.Adopted)
	case s.Declared.Adoption.Abandon:
		return Decision{Verdict: Done, Message: fmt.Sprintf("abandoned: the replicas have left cluster %s. "+
			"Declare lifecycle Deleted, or remove abandon to join again", s.Record.Adopted)}, true
	}
	return Decision{Verdict: Done, Message: fmt.Sprintf("adopted, holding: %s. Move the clients, then release the "+
		"guests with spec.adopt.release: %s", s.describeGuests(), s.listGuests())}, true
}

// adoptionTakenBack reports whether git no longer declares the adoption although guests remain. Quorate then does not
// know how to reach them.
func (s State) adoptionTakenBack() bool {
	return s.adopting() && s.Declared.Adoption.ClusterID != s.Record.Adopted
}

func (s State) declareAdoptionAgain() string {
	return fmt.Sprintf("git no longer declares the adoption of cluster %s, whose members are still recorded as "+
		"guests. Declare spec.adopt again: to complete the adoption, with release; to leave the cluster, with "+
		"abandon: true", s.Record.Adopted)
}

// abandonIsVoid is why the replicas do not leave if the record was lost.
const abandonIsVoid = "the record of the guests was lost, so spec.adopt.abandon has no effect. Remove it, run a " +
	"pass, and declare it again"

// describeRejoined returns a sentence about the likely reason for unknown members of an adopted cluster, or "".
func (s State) describeRejoined() string {
	if !s.adopting() {
		return ""
	}
	return "A tool of the adopted cluster may have added it: stop that tool first. "
}

// listGuests returns the names and IDs of the guests that are not released yet.
func (s State) listGuests() string {
	var list []string
	for _, m := range s.Guests() {
		list = append(list, fmt.Sprintf("%s (%s)", m.ID, orUnknown(m.Name)))
	}
	slices.Reverse(list) // a StatefulSet that is scaled down loses the highest ordinal first
	return strings.Join(list, ", ")
}

// stillJoined returns the replicas that may still be members of the adopted cluster, which needs their votes, or "".
func (s State) stillJoined() string {
	if !s.mayHaveGuests() {
		return ""
	}
	var names []string
	for _, m := range RequiredRecord(s, "").Members {
		names = append(names, s.ReplicaName(m.Ordinal))
	}
	slices.Sort(names)
	return Enumerate(names)
}
