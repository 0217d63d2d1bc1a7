package decide

import "time"

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
	// PodQuota is the quota of the database, in bytes, that a pod runs with which was made from another declaration;
	// zero if it is not known.
	PodQuota int64 `json:"podQuota,omitempty"`
	// PodMessage says why the pod is not ready, in Kubernetes' words or
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

	// VolumeUID is the UID of the claim; empty if there is none, or if it was created under a running
	// pod: etcd still runs on the volume of the claim before it.
	VolumeUID string `json:"volumeUID,omitempty"`
	// VolumeToken is the cluster token that the claim was made for.
	VolumeToken string `json:"volumeToken,omitempty"`
	// VolumeTerminating: the claim is being deleted.
	VolumeTerminating bool `json:"volumeTerminating,omitempty"`
	// LostCluster is the ID of the cluster that the claim is marked to be left of, since a new one was made of
	// another member's data; zero if it is not marked.
	LostCluster ID `json:"lostCluster,omitempty"`
	// LastUse is what the annotations of the claim say of the etcd that last ran on the volume; zero if they say nothing.
	LastUse LastUse `json:"lastUse,omitzero"`
	// Stranded says why no pod can ever use the volume again, such as that its node is gone; empty
	// if that is not known.
	Stranded string `json:"stranded,omitempty"`
	// StrandedSince is since when passes have found it stranded; zero if it is not, or this pass is
	// the first to find it so.
	StrandedSince time.Time `json:"strandedSince,omitzero"`

	// ClusterID is the one that etcd in this pod reports; zero if it does not answer.
	ClusterID ID `json:"clusterID,omitempty"`
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
