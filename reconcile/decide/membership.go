package decide

import (
	"strconv"
	"strings"
	"time"
)

// Membership is etcd's member list, or the reason why it is not known.
type Membership struct {
	// Known: the list is linearizable, so a majority of the voters stood behind it.
	Known bool `json:"known"`
	// Why the list is not known.
	Why string `json:"why,omitempty"`
	// Forbidden says which right is missing to ask etcd at all, in the API server's words; empty if
	// none is.
	Forbidden string `json:"forbidden,omitempty"`
	// ClusterID as etcd reports it.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members in any order. While the list is not Known they are what single members believe: good
	// for explaining, never for acting.
	Members []Member `json:"members,omitempty"`
	// StaleAlarms are alarms of members that are gone. They hold until they are disarmed (hard case
	// H31).
	StaleAlarms []Alarm `json:"staleAlarms,omitempty"`
	// Downgrade is the minor version, such as 3.6, that etcd has been told to prepare a downgrade
	// to; empty if none is under way.
	Downgrade string `json:"downgrade,omitempty"`
}

// AlarmKind is etcd's name for what an alarm is about. A name that is not among these is kept as
// etcd says it.
type AlarmKind string

// The kinds of alarms that etcd raises.
const (
	// AlarmNoSpace: the database has reached its quota, and etcd refuses writes.
	AlarmNoSpace AlarmKind = "NOSPACE"
	// AlarmCorrupt: members hold different data. Whom it names is the word of one member: a leader
	// that checks its followers blames them, also where its own data are the wrong ones (etcd:
	// PeriodicCheck).
	AlarmCorrupt AlarmKind = "CORRUPT"
)

// Alarm is an alarm that a member has raised.
type Alarm struct {
	ID   ID        `json:"id"`
	Kind AlarmKind `json:"kind"`
}

// Member is an entry in etcd's member list, with what the member says of itself.
type Member struct {
	ID ID `json:"id"`
	// Name is empty for a member that was added and has not started.
	Name string `json:"name,omitempty"`
	// PeerURL is its first peer URL.
	PeerURL string `json:"peerURL,omitempty"`
	// Started: it has published its client URLs, so it has started at least once.
	Started bool `json:"started"`
	Learner bool `json:"learner,omitempty"`
	Leader  bool `json:"leader,omitempty"`

	// Answers: it answered in this pass and knows a leader.
	Answers bool `json:"answers"`
	// Why it does not answer.
	Why string `json:"why,omitempty"`

	// SilentSince is since when passes have found it silent; zero if it answers, or that is not
	// known.
	SilentSince time.Time `json:"silentSince,omitzero"`
	// Disagrees says how the list that it believes in differs from the linearizable one; empty if
	// it does not.
	Disagrees string `json:"disagrees,omitempty"`

	Version string `json:"version,omitempty"`
	// StorageVersion is the minor version that its data are written for, such as 3.6; empty if it
	// does not say.
	StorageVersion string `json:"storageVersion,omitempty"`

	Revision    int64       `json:"revision,omitempty"`
	RaftIndex   uint64      `json:"raftIndex,omitempty"`
	Applied     uint64      `json:"applied,omitempty"` // raft index applied to its data
	DBSize      int64       `json:"dbSize,omitempty"`
	DBSizeInUse int64       `json:"dbSizeInUse,omitempty"`
	Alarms      []AlarmKind `json:"alarms,omitempty"`

	// Hash of its data. Members are asked for it only if there is reason to doubt somebody's data,
	// all at one revision.
	Hash Hash `json:"hash,omitzero"`
	// HashWhy says why it gave none, though it was asked.
	HashWhy string `json:"hashWhy,omitempty"`
}

// AlarmNames are the alarms that a member raises, as etcd calls them.
func (m Member) AlarmNames() []string {
	var names []string
	for _, kind := range m.Alarms {
		names = append(names, string(kind))
	}
	return names
}

// ReplicaName is the name of the replica with that ordinal: of its pod and of its member.
func (s State) ReplicaName(ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// Ordinal returns the ordinal in a member's name, and whether the name is one of this cluster's.
func (s State) Ordinal(name string) (int, bool) {
	digits, ours := strings.CutPrefix(name, s.Name+"-")
	n, _ := strconv.Atoi(digits) // what is no number does not come back as it was
	if !ours || n < 0 || n >= MaxOrdinals || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// OrdinalOf returns the ordinal of a member, and whether it is one of this cluster's. One that has
// not started has no name yet: its peer URL starts with that of its pod.
func (s State) OrdinalOf(m Member) (int, bool) {
	if m.Name != "" {
		return s.Ordinal(m.Name)
	}
	_, address, _ := strings.Cut(m.PeerURL, "://")
	pod, _, _ := strings.Cut(address, ".")
	return s.Ordinal(pod)
}
