package decide

import (
	"strconv"
	"strings"
	"time"
)

// Membership is etcd's member list, or the reason why it is unknown.
type Membership struct {
	// Known is true if the list is linearizable, and a majority of the voters in it, and of the recorded voters,
	// returned the same list. A single member that returns a false list is not enough.
	Known bool `json:"known"`
	// Why is why the list is unknown.
	Why string `json:"why,omitempty"`
	// Unconfirmed is true if Known is false although a member returned a linearizable list: the cluster may have
	// quorum.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Disputed is true if the list is Unconfirmed because members returned different lists.
	Disputed bool `json:"disputed,omitempty"`
	// Unrecorded is true if the list is Unconfirmed only because too few of the recorded voters returned it. Members
	// then contains the members in this list.
	Unrecorded bool `json:"unrecorded,omitempty"`
	// Forbidden is the API server's message if Quorate does not have the right to query etcd, or empty.
	Forbidden string `json:"forbidden,omitempty"`
	// ClusterID is the cluster ID that etcd reports.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members lists the members in any order. While Known is false, the entries are the views of single members: use
	// them in explanations, never for actions.
	Members []Member `json:"members,omitempty"`
	// StaleAlarms are alarms of removed members. They stay active until they are disarmed (hard case H31).
	StaleAlarms []Alarm `json:"staleAlarms,omitempty"`
	// Downgrade is the minor version, such as 3.6, to which etcd is preparing a downgrade, or empty.
	Downgrade string `json:"downgrade,omitempty"`
}

// MayServe reports whether a member returned a linearizable list. Even if no quorum confirms the list, the cluster does
// not count as lost.
func (m Membership) MayServe() bool { return m.Known || m.Unconfirmed }

// AlarmKind is etcd's name for the type of an alarm. Unknown names are kept unchanged.
type AlarmKind string

// The kinds of alarms that etcd raises.
const (
	// AlarmNoSpace means that the database has reached its quota, and etcd rejects writes.
	AlarmNoSpace AlarmKind = "NOSPACE"
	// AlarmCorrupt means that members hold different data. The member that the alarm names may still hold the right
	// data: a leader that checks its followers blames them even if its own data is wrong (etcd: PeriodicCheck).
	AlarmCorrupt AlarmKind = "CORRUPT"
)

// Alarm is an alarm that a member has raised.
type Alarm struct {
	ID   ID        `json:"id"`
	Kind AlarmKind `json:"kind"`
}

// Member is an entry in etcd's member list, with the member's own report.
type Member struct {
	ID ID `json:"id"`
	// Name is empty for a member that has been added but has not started.
	Name string `json:"name,omitempty"`
	// PeerURL is its first peer URL. Only members that Quorate did not add have more.
	PeerURL      string   `json:"peerURL,omitempty"`
	MorePeerURLs []string `json:"morePeerURLs,omitempty"`
	// Started is true if the member has published its client URLs, so it has started at least once.
	Started bool `json:"started"`
	Learner bool `json:"learner,omitempty"`
	Leader  bool `json:"leader,omitempty"`

	// Answers is true if the member responded in this pass and knows a leader.
	Answers bool `json:"answers"`
	// Why is why the member does not respond.
	Why string `json:"why,omitempty"`

	// SilentSince is when the member stopped responding to passes. It is zero if the member responds or the time is
	// unknown.
	SilentSince time.Time `json:"silentSince,omitzero"`
	// Disagrees describes how the member's own list differs from the linearizable list, or is empty.
	Disagrees string `json:"disagrees,omitempty"`

	Version string `json:"version,omitempty"`
	// StorageVersion is the minor version of its data format, such as 3.6, or empty if it does not report one.
	StorageVersion string `json:"storageVersion,omitempty"`

	Revision    int64       `json:"revision,omitempty"`
	RaftIndex   uint64      `json:"raftIndex,omitempty"`
	Applied     uint64      `json:"applied,omitempty"` // raft index applied to its data
	DBSize      int64       `json:"dbSize,omitempty"`
	DBSizeInUse int64       `json:"dbSizeInUse,omitempty"`
	Alarms      []AlarmKind `json:"alarms,omitempty"`
	// Defragmented is the last defragmentation of the member, according to the custom resource's status.
	Defragmented LastDefragmentation `json:"defragmented,omitzero"`

	// Hash is the hash of the member's data. Hashes are requested only if the members' data may differ, and always for
	// the same revision.
	Hash Hash `json:"hash,omitzero"`
	// HashWhy is why a member that was asked returned no hash.
	HashWhy string `json:"hashWhy,omitempty"`
}

// AlarmNames returns the names of a member's alarms, as etcd reports them.
func (m Member) AlarmNames() []string {
	var names []string
	for _, kind := range m.Alarms {
		names = append(names, string(kind))
	}
	return names
}

// ReplicaName returns the name of the replica with that ordinal, which is the name of its pod and its member.
func (s State) ReplicaName(ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// Ordinal returns the ordinal in a member's name, and whether the name belongs to this cluster.
func (s State) Ordinal(name string) (int, bool) {
	rest, ours := strings.CutPrefix(name, s.Name)
	digits, dash := strings.CutPrefix(rest, "-")
	n, _ := strconv.Atoi(digits) // if digits is not a number, Itoa returns something else
	if !ours || !dash || n < 0 || n >= MaxOrdinals || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// isReplicaName reports whether a member's name is the name of a replica.
func (s State) isReplicaName(name string) bool {
	_, is := s.Ordinal(name)
	return is
}

// namedOrdinal is like OrdinalOf, but only for members that have a name.
func (s State) namedOrdinal(m Member) (int, bool) {
	if m.Name == "" {
		return 0, false
	}
	return s.OrdinalOf(m)
}

// OrdinalOf returns a member's ordinal, and whether the member is a replica of this cluster. A member that has not
// started has no name yet, but the host in its peer URL starts with its pod's name. In an adopted cluster, the
// peer URL of a replica takes precedence over the member's name, because names are arbitrary.
func (s State) OrdinalOf(m Member) (int, bool) {
	adopts := s.Declared.Adoption.declared() || s.Record.Adopted != 0
	switch {
	case s.isForeign(m):
		return 0, false
	case m.Name != "" && !(adopts && s.atOurURL(m)):
		return s.Ordinal(m.Name)
	}
	_, address, _ := strings.Cut(m.PeerURL, "://")
	pod, _, _ := strings.Cut(address, ".")
	return s.Ordinal(pod)
}
