package decide

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ID is an ID of etcd's: of a cluster or of a member. Zero means that there is none yet. It prints as etcd's
// own tools print it, in hexadecimal.
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
	// ReportedClusterID is the cluster ID in the status of the custom resource; zero if there is none. It gets there from a
	// record, so that a record without one is older than the status.
	ReportedClusterID ID `json:"reportedClusterID,omitempty"`
	// Objects is how the Kubernetes objects compare with what they should be.
	Objects Objects `json:"objects"`
	// Replicas are the slots that have a pod or a volume, in any order. They are seen before etcd is asked, so that a
	// member that answers had this volume or an older one.
	Replicas []Replica `json:"replicas,omitempty"`
	// Membership is etcd's own word.
	Membership Membership `json:"membership"`
	// LockHolder is who else holds the lease of this cluster, in words; empty if nobody does.
	LockHolder string `json:"lockHolder,omitempty"`
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
	// Problems say why this declaration cannot be acted on; none if it can.
	Problems []string `json:"problems,omitempty"`
}

// Mode is the kind of configuration file that a member starts with.
type Mode string

// The modes.
const (
	// Founding: initial-cluster-state new, all founding members listed. Only before the member first started.
	Founding Mode = "Founding"
	// Joining: initial-cluster-state existing, the member list of that moment. Only until the learner has started.
	Joining Mode = "Joining"
	// Sealed: the file does not name its own member, so that etcd starts on its data or not at all.
	Sealed Mode = "Sealed"
)

// Record is what Quorate keeps of a cluster between passes, in the ConfigMap beside the members' files. It is
// all of the truth about how a member may start.
type Record struct {
	// Token is the nonce in the initial-cluster-token; empty if there is no record.
	Token string `json:"token,omitempty"`
	// ClusterID is zero until the cluster has formed.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members by ascending ordinal.
	Members []RecordedMember `json:"members,omitempty"`
}

// RecordedMember is one member in the record.
type RecordedMember struct {
	Ordinal int  `json:"ordinal"`
	Mode    Mode `json:"mode"`
	// ID of the member and UID of the volume that holds its data, known once it is sealed.
	ID        ID     `json:"id,omitempty"`
	VolumeUID string `json:"volumeUID,omitempty"`
}

// Objects is how the Kubernetes objects of the cluster compare with what they should be. Each entry is one
// object and what is the matter with it, such as "Service a-client: missing".
type Objects struct {
	// DeclarationDiffers: the custom resource is missing or says something else than git.
	DeclarationDiffers bool `json:"declarationDiffers,omitempty"`
	// Drift: missing, or other than they should be; the custom resource among them.
	Drift []string `json:"drift,omitempty"`
	// Mendable: those of Drift that can be put right while git asks for other pods than run: all but a StatefulSet that is
	// there, and a ConfigMap that is there with the record that it must carry.
	Mendable []string `json:"mendable,omitempty"`
	// Foreign: an object bears one of our names and is not ours.
	Foreign []string `json:"foreign,omitempty"`
	// Terminating: being deleted by Kubernetes.
	Terminating []string `json:"terminating,omitempty"`
	// Irreplaceable: lost, and not to be made anew while members depend on the old one.
	Irreplaceable []string `json:"irreplaceable,omitempty"`
	// RunsVersion and RunsHash are the version and SpecHash that the StatefulSet gives to new pods; empty without one.
	RunsVersion string `json:"runsVersion,omitempty"`
	RunsHash    string `json:"runsHash,omitempty"`
	// RunsStorage is the size and class that it gives to new volumes; Kubernetes lets nobody change that.
	RunsStorage string `json:"runsStorage,omitempty"`
}

// PodPhase is what a pod is doing.
type PodPhase string

// The phases. Failing: its container exits, or its image cannot be had. It may be over in a moment; only a pod that
// has not been ready for long is given up.
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
	// PodMessage says why the pod is not ready, in Kubernetes' words or etcd's last ones.
	PodMessage string `json:"podMessage,omitempty"`

	// VolumeUID is the UID of the claim; empty if there is none.
	VolumeUID string `json:"volumeUID,omitempty"`
	// VolumeToken is the cluster token that the claim was made for.
	VolumeToken string `json:"volumeToken,omitempty"`
	// VolumeTerminating: the claim is being deleted.
	VolumeTerminating bool `json:"volumeTerminating,omitempty"`

	// ClusterID is the one that etcd in this pod reports; zero if it does not answer.
	ClusterID ID `json:"clusterID,omitempty"`
}

// Membership is etcd's member list, or the reason why it is not known.
type Membership struct {
	// Known: the list is linearizable, so a majority of the voters stood behind it.
	Known bool `json:"known"`
	// Why the list is not known.
	Why string `json:"why,omitempty"`
	// ClusterID as etcd reports it.
	ClusterID ID `json:"clusterID,omitempty"`
	// Members in any order. While the list is not Known they are what single members believe: good for explaining,
	// never for acting.
	Members []Member `json:"members,omitempty"`
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

	Version     string   `json:"version,omitempty"`
	Revision    int64    `json:"revision,omitempty"`
	RaftIndex   uint64   `json:"raftIndex,omitempty"`
	DBSize      int64    `json:"dbSize,omitempty"`
	DBSizeInUse int64    `json:"dbSizeInUse,omitempty"`
	Alarms      []string `json:"alarms,omitempty"`
}

// ReplicaName is the name of the replica with that ordinal: of its pod and of its member.
func (s State) ReplicaName(ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// Ordinal returns the ordinal in a member's name, and whether the name is one of this cluster's.
func (s State) Ordinal(name string) (int, bool) {
	digits, ours := strings.CutPrefix(name, s.Name+"-")
	n, _ := strconv.Atoi(digits) // what is no number does not come back as it was
	if !ours || n < 0 || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
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
