package decide

import "time"

// PodPhase is the state of a pod.
type PodPhase string

// The phases of a pod. PodFailing means that the container exits, or its image cannot be pulled. This may be brief: a
// member is replaced only if its pod has been unready for a long time.
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
	// PodSince is the time since which the pod has not been ready, or zero if it is ready or the time is unknown.
	PodSince time.Time `json:"podSince,omitzero"`
	// PodUID is the pod's UID. PodVersion and PodSpecHash are the version and SpecHash with which the pod was created.
	PodUID      string `json:"podUID,omitempty"`
	PodVersion  string `json:"podVersion,omitempty"`
	PodSpecHash string `json:"podSpecHash,omitempty"`
	// PodQuota is the database quota, in bytes, of a pod that was created from a different declaration, or zero if
	// unknown.
	PodQuota int64 `json:"podQuota,omitempty"`
	// PodMessage is why the pod is not ready, according to Kubernetes or etcd's last messages.
	PodMessage string `json:"podMessage,omitempty"`
	// PodRefused is Kubernetes' reason for not creating the pod that the StatefulSet requests, or empty if unknown.
	PodRefused string `json:"podRefused,omitempty"`
	// PodCrashes is how often etcd in this pod was restarted, if it last exited by itself with an error. Kubernetes
	// does not report earlier exits. It is zero if the last exit was caused by a lack of memory or from outside.
	PodCrashes int `json:"podCrashes,omitempty"`
	// PodStarted is when the container of a Starting pod last started, or zero if unknown.
	PodStarted time.Time `json:"podStarted,omitzero"`
	// PodGoing is the time by which a Terminating pod should be gone, or zero if the pod is not Terminating.
	PodGoing time.Time `json:"podGoing,omitzero"`
	// PodStoppedByCheck is true if etcd in this pod last exited because it found, before serving, that a peer's data
	// differs from its own. This does not show which of the two is wrong.
	PodStoppedByCheck bool `json:"podStoppedByCheck,omitempty"`

	// NoData is true if etcd in this pod exited because its volume has no data, and its configuration file does not
	// allow it to start without data.
	NoData bool `json:"noData,omitempty"`
	// NoPeers is true if etcd in this pod exited because the other members did not confirm that it could join.
	NoPeers bool `json:"noPeers,omitempty"`
	// PodUnbound is true if the pod got a node before its claim was created, and the claim has no volume. The scheduler
	// no longer processes the pod, so the claim is never bound and the pod never starts.
	PodUnbound bool `json:"podUnbound,omitempty"`

	// VolumeUID is the UID of the claim. It is empty if there is no claim, or if the claim was created while the pod
	// was running: etcd still uses the previous claim's volume.
	VolumeUID string `json:"volumeUID,omitempty"`
	// VolumeToken is the cluster token with which the claim was created.
	VolumeToken string `json:"volumeToken,omitempty"`
	// VolumeTerminating is true if the claim is being deleted.
	VolumeTerminating bool `json:"volumeTerminating,omitempty"`
	// LostCluster is the ID of the lost cluster to which the claim belongs, according to its mark, because a new
	// cluster was created from a different member's data. It is zero without a mark.
	LostCluster ID `json:"lostCluster,omitempty"`
	// LastUse is the information in the claim's annotations about the etcd that last ran on the volume, or zero.
	LastUse LastUse `json:"lastUse,omitzero"`
	// Stranded is why pods can never use the volume again, such as a missing node, or empty if unknown.
	Stranded string `json:"stranded,omitempty"`
	// StrandedSince is the time since which passes have found the volume stranded. It is zero if the volume is not
	// stranded, or if this pass is the first to find it stranded.
	StrandedSince time.Time `json:"strandedSince,omitzero"`

	// ClusterID is the cluster ID reported by etcd in this pod, or zero if it does not respond.
	ClusterID ID `json:"clusterID,omitempty"`
}

// Replica returns the replica with that ordinal, or a replica without a pod and volume.
func (s State) Replica(ordinal int) Replica {
	for _, r := range s.Replicas {
		if r.Ordinal == ordinal {
			return r
		}
	}
	return Replica{Ordinal: ordinal, Pod: PodAbsent}
}
