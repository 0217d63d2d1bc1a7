package decide

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID is an ID of etcd's: of a cluster or of a member. Zero means that there is none yet. It prints
// as etcd's own tools print it, in hexadecimal.
type ID uint64

// String returns the hexadecimal form.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText returns the hexadecimal form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the hexadecimal form.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("parse ID %q: %w", text, err)
	}
	*id = ID(n)
	return nil
}

// State is everything that one decision may look at. It holds no secrets, and marshals to JSON.
type State struct {
	// Name of the cluster; its replicas are Name-0, Name-1, ….
	Name string `json:"name"`
	// Now is the time at which the rest was seen.
	Now time.Time `json:"now"`
	// Declared is what git asks for.
	Declared Declared `json:"declared"`
	// Record is what earlier passes wrote down in the cluster.
	Record Record `json:"record"`
	// ReportedClusterID is the cluster ID in the status of the custom resource; zero if there is
	// none. It gets there from a record, so that a record without one is older than the status.
	ReportedClusterID ID `json:"reportedClusterID,omitempty"`
	// Objects is how the Kubernetes objects compare with what they should be.
	Objects Objects `json:"objects"`
	// Replicas are the slots that have a pod or a volume, in any order. They are seen before etcd
	// is asked, so that a member that answers had this volume or an older one.
	Replicas []Replica `json:"replicas,omitempty"`
	// Membership is etcd's own word.
	Membership Membership `json:"membership"`
	// CA is what is seen of the CA.
	CA CA `json:"ca,omitzero"`
	// Certificates are those that there are, in any order, and how long they are good for.
	Certificates []Certificate `json:"certificates,omitempty"`
	// ClientIsRoot: applications are etcd's superuser by their certificate, and stay it, since
	// authentication is on: they may have their rights by that.
	ClientIsRoot bool `json:"clientIsRoot,omitempty"`
	// ReportedVersion is the oldest version that a member ran when the status was last written;
	// empty if none ever did.
	ReportedVersion string `json:"reportedVersion,omitempty"`
	// LockHolder is who else holds the lease of this cluster, in words; empty if nobody does.
	LockHolder string `json:"lockHolder,omitempty"`
	// Waited is what passes have waited for since they last changed anything, by the status of the
	// custom resource.
	Waited []Waited `json:"waited,omitempty"`
	// Unseen says what was not looked at for lack of a right, and what is not known for that.
	// Whoever acts has seen everything.
	Unseen []string `json:"unseen,omitempty"`
}

// Declared is what git asks for, as far as a decision depends on it.
type Declared struct {
	Replicas  int    `json:"replicas"`
	Version   string `json:"version"`
	Suspended bool   `json:"suspended,omitempty"`
	// Lifecycle is Running, Stopped or Deleted.
	Lifecycle string `json:"lifecycle"`
	// SpecHash is a digest of all that makes a pod run differently, the version left out.
	SpecHash string `json:"specHash"`
	// Storage is the size and class of the volumes, in words.
	Storage string `json:"storage,omitempty"`
	// Quota of the database of each member, in bytes; zero if it is not known.
	Quota int64 `json:"quota,omitempty"`
	// Retention says what becomes of the volumes when the lifecycle is Deleted: Retain or Delete.
	Retention string `json:"retention,omitempty"`
	// ReplaceAfter is how long a member may be silent before it is replaced; zero: however long.
	ReplaceAfter time.Duration `json:"replaceAfter,omitempty"`
	// Orphaned says that git declares this cluster no longer, and since which revision; empty if it
	// does declare it.
	Orphaned string `json:"orphaned,omitempty"`
	// RenamedFrom says which cluster this one seems to have been until git renamed or moved it;
	// empty if it seems new.
	RenamedFrom string `json:"renamedFrom,omitempty"`
	// ConfirmedMembers are the members, and no others, that a person says etcd may list although
	// most of those on record are not among them.
	ConfirmedMembers []ID `json:"confirmedMembers,omitempty"`
	// Problems say why this declaration cannot be acted on; none if it can.
	Problems []string `json:"problems,omitempty"`
}

// Mode is the kind of configuration file that a member starts with.
type Mode string

// The modes.
const (
	// Founding: initial-cluster-state new, all founding members listed. Only before the member
	// first started.
	Founding Mode = "Founding"
	// Joining: initial-cluster-state existing, the member list of that moment. Only until the
	// learner has started.
	Joining Mode = "Joining"
	// Sealed: the file does not name its own member, so that etcd starts on its data or not at all.
	Sealed Mode = "Sealed"
)

// Record is what Quorate keeps of a cluster between passes, in the ConfigMap beside the members'
// files. It is all of the truth about how a member may start.
type Record struct {
	// Token is the nonce in the initial-cluster-token; empty if there is no record.
	Token string `json:"token,omitempty"`
	// ClusterID is zero until the cluster has formed.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members by ascending ordinal.
	Members []RecordedMember `json:"members,omitempty"`
	// LogVersion is the oldest minor version, such as 3.6, whose entries a member may still have in
	// its log; empty if that is not known.
	LogVersion string `json:"logVersion,omitempty"`
	// CA is the fingerprint of the CA that members trust; empty without TLS, or if it is not known
	// yet.
	CA string `json:"ca,omitempty"`
	// Removed are the slots whose member is gone, by ascending ordinal: their volumes go before
	// they are used again.
	Removed []RemovedMember `json:"removed,omitempty"`
	// Confirmed are the members that a person had confirmed when a list was followed that had lost
	// most of those on record, ascending.
	Confirmed []ID `json:"confirmed,omitempty"`
	// Replaced counts how often the member of a slot was replaced lately, by ascending ordinal.
	Replaced []Replacements `json:"replaced,omitempty"`
}

// Replacements is how often the member of a slot was replaced, each time within a day of the time
// before.
type Replacements struct {
	Ordinal int       `json:"ordinal"`
	Times   int       `json:"times"`
	Last    time.Time `json:"last"`
}

// RemovedMember is what a member has left behind that etcd lists no longer.
type RemovedMember struct {
	Ordinal int `json:"ordinal"`
	// VolumeUID of the volume that was in the slot when the member was seen to be gone; empty if
	// there was none.
	VolumeUID string `json:"volumeUID,omitempty"`
}

// RecordedMember is one member in the record.
type RecordedMember struct {
	Ordinal int  `json:"ordinal"`
	Mode    Mode `json:"mode"`
	// ID of the member and UID of the volume that holds its data, known once it is sealed.
	ID        ID     `json:"id,omitempty"`
	VolumeUID string `json:"volumeUID,omitempty"`
	// Leaving: etcd is about to be told to remove it. It says whose removal it was if etcd then
	// lists too few of those on record to tell.
	Leaving bool `json:"leaving,omitempty"`
}

// Objects is how the Kubernetes objects of the cluster compare with what they should be. Each entry
// is one object and what is the matter with it, such as "Service a-client: missing".
type Objects struct {
	// DeclarationDiffers: the custom resource is missing or says something else than git.
	DeclarationDiffers bool `json:"declarationDiffers,omitempty"`
	// Drift: missing, or other than they should be; the custom resource among them.
	Drift []string `json:"drift,omitempty"`
	// Foreign: an object has one of our names and is not ours.
	Foreign []string `json:"foreign,omitempty"`
	// Relabelled: ours, and without the labels by which it is found, such as "Pod a-1 has lost
	// app.kubernetes.io/managed-by=quorate".
	Relabelled []string `json:"relabelled,omitempty"`
	// Terminating: being deleted by Kubernetes.
	Terminating []string `json:"terminating,omitempty"`
	// Irreplaceable: lost, and not to be recreated while members depend on the old one.
	Irreplaceable []string `json:"irreplaceable,omitempty"`
	// RunsVersion and RunsHash are the version and SpecHash that the StatefulSet gives to new pods;
	// empty without one.
	RunsVersion string `json:"runsVersion,omitempty"`
	RunsHash    string `json:"runsHash,omitempty"`
	// RunsReplicas is how many pods the StatefulSet keeps.
	RunsReplicas int `json:"runsReplicas,omitempty"`
	// RunsToken is the cluster token that it makes new volumes for; empty without one.
	RunsToken string `json:"runsToken,omitempty"`
	// Remaining are the objects of the cluster that are there, the custom resource left aside.
	Remaining []string `json:"remaining,omitempty"`
	// RunsStorage is the size and class that it gives to new volumes; Kubernetes lets nobody change
	// that.
	RunsStorage string `json:"runsStorage,omitempty"`
}

// PodPhase is what a pod is doing.
type PodPhase string

// The phases. Failing: its container exits, or its image cannot be had. It may be over in a moment;
// only a pod that has not been ready for long is given up.
const (
	PodAbsent      PodPhase = "Absent"
	PodPending     PodPhase = "Pending"
	PodStarting    PodPhase = "Starting"
	PodReady       PodPhase = "Ready"
	PodFailing     PodPhase = "Failing"
	PodTerminating PodPhase = "Terminating"
)

// Replica is a numbered slot: a pod and its volume.
type Replica struct {
	Ordinal int `json:"ordinal"`

	Pod PodPhase `json:"pod"`
	// PodSince is since when the pod has not been ready; zero if that is not known, or it is.
	PodSince time.Time `json:"podSince,omitzero"`
	// PodUID, and the version and SpecHash that the pod was made with.
	PodUID      string `json:"podUID,omitempty"`
	PodVersion  string `json:"podVersion,omitempty"`
	PodSpecHash string `json:"podSpecHash,omitempty"`
	// PodMessage says why the pod is not ready, of which etcd may be, in Kubernetes' words or
	// etcd's last ones.
	PodMessage string `json:"podMessage,omitempty"`
	// PodRefused says why Kubernetes does not make the pod although the StatefulSet wants it, in
	// its own words; empty if that is not known.
	PodRefused string `json:"podRefused,omitempty"`
	// PodCrashes is how often etcd in this pod has been started again, if it has last ended by
	// itself with an error: of how it ended before that, Kubernetes says nothing. It is zero if the
	// last time was for want of memory, or from outside.
	PodCrashes int `json:"podCrashes,omitempty"`
	// PodStarted is since when the container of a pod that is Starting has run this time; zero if
	// that is not known.
	PodStarted time.Time `json:"podStarted,omitzero"`
	// PodGoing is when a pod that is Terminating was to be gone at the latest; zero if it is not.
	PodGoing time.Time `json:"podGoing,omitzero"`
	// PodStoppedByCheck: etcd in this pod has last ended because it found, before it served
	// anybody, that a peer's data differ from its own. It does not say whose are wrong.
	PodStoppedByCheck bool `json:"podStoppedByCheck,omitempty"`

	// NoData: etcd in this pod has ended because it found no data on its volume, and its file does
	// not let it start without.
	NoData bool `json:"noData,omitempty"`
	// NoPeers: etcd in this pod has ended because no member answered that it could join.
	NoPeers bool `json:"noPeers,omitempty"`
	// PodUnbound: the pod was given a node before its claim was made, and the claim has no volume.
	// The scheduler looks at such a pod no more, so neither will ever get the other.
	PodUnbound bool `json:"podUnbound,omitempty"`

	// VolumeUID is the UID of the claim; empty if there is none.
	VolumeUID string `json:"volumeUID,omitempty"`
	// VolumeToken is the cluster token that the claim was made for.
	VolumeToken string `json:"volumeToken,omitempty"`
	// VolumeTerminating: the claim is being deleted.
	VolumeTerminating bool `json:"volumeTerminating,omitempty"`
	// Stranded says why no pod can ever use the volume again, such as that its node is gone; empty
	// if that is not known.
	Stranded string `json:"stranded,omitempty"`
	// StrandedSince is since when passes have found it stranded; zero if it is not, or this pass is
	// the first to find it so.
	StrandedSince time.Time `json:"strandedSince,omitzero"`

	// ClusterID is the one that etcd in this pod reports; zero if it does not answer.
	ClusterID ID `json:"clusterID,omitempty"`
}

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

// Alarm is an alarm that a member has raised, NOSPACE or CORRUPT.
type Alarm struct {
	ID   ID     `json:"id"`
	Kind string `json:"kind"`
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

	Revision    int64    `json:"revision,omitempty"`
	RaftIndex   uint64   `json:"raftIndex,omitempty"`
	Applied     uint64   `json:"applied,omitempty"` // raft index applied to its data
	DBSize      int64    `json:"dbSize,omitempty"`
	DBSizeInUse int64    `json:"dbSizeInUse,omitempty"`
	Alarms      []string `json:"alarms,omitempty"`

	// Hash of its data. Members are asked for it only if there is reason to doubt somebody's data,
	// all at one revision.
	Hash Hash `json:"hash,omitzero"`
	// HashWhy says why it gave none, though it was asked.
	HashWhy string `json:"hashWhy,omitempty"`
}

// ReplicaName is the name of the replica with that ordinal: of its pod and of its member.
func (s State) ReplicaName(ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// Ordinal returns the ordinal in a member's name, and whether the name is one of this cluster's.
func (s State) Ordinal(name string) (int, bool) {
	digits, ours := strings.CutPrefix(name, s.Name+"-")
	n, _ := strconv.Atoi(digits) // what is no number does not come back as it was
	if !ours || n < 0 || n >= maxOrdinals || strconv.Itoa(n) != digits {
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

// Replica returns the replica with that ordinal; one without pod and volume if there is none.
func (s State) Replica(ordinal int) Replica {
	for _, r := range s.Replicas {
		if r.Ordinal == ordinal {
			return r
		}
	}
	return Replica{Ordinal: ordinal, Pod: PodAbsent}
}
