package decide

import (
	"fmt"
	"strings"

	"quorate.dev/quorate/internal/etcdversion"
)

// LastUse contains the information in a claim's annotations about the etcd that last ran on the volume. The annotations
// outlive the record, the status and the pods.
type LastUse struct {
	ClusterID ID `json:"clusterID,omitempty"`
	// Version is the etcd version, and StorageVersion the minor version of its data, if etcd reports it.
	Version        string `json:"version,omitempty"`
	StorageVersion string `json:"storageVersion,omitempty"`
}

// OutdatedUses returns the replicas whose claims have outdated annotations, each with the current values. Only a member
// that responds and is recorded with this volume is known to run on it. A pod that has started etcd but does not
// respond yet may already have converted the data to its newer version.
func (s State) OutdatedUses() []Replica {
	another := s.Membership.Known && s.Membership.ClusterID != s.Record.ClusterID
	if s.Declared.Orphaned != "" || s.Declared.Suspended || s.LockHolder != "" || another {
		return nil
	}
	var outdated []Replica
	listed := s.listed()
	for _, r := range s.replicasInOrder() {
		recorded, _ := s.Record.Member(r.Ordinal)
		if recorded.Mode != Sealed || !hasVolume(r) || recorded.VolumeUID != r.VolumeUID || r.VolumeTerminating ||
			r.LostCluster != 0 {
			continue
		}
		use := r.LastUse
		switch m := listed[r.Ordinal]; {
		case s.Membership.Known && m.Answers && m.ID == recorded.ID:
			use = LastUse{ClusterID: s.Record.ClusterID, StorageVersion: m.StorageVersion}
			if v, err := s.runs(m); err == nil {
				use.Version = v.String()
			}
		case r.startsNewer():
			use.Version = r.PodVersion
		}
		if use != r.LastUse {
			r.LastUse = use
			outdated = append(outdated, r)
		}
	}
	return outdated
}

// startsNewer reports whether a pod that runs etcd was created with a newer version than the version that last used its
// claim.
func (r Replica) startsNewer() bool {
	started := r.Pod == PodStarting || r.Pod == PodReady || r.PodCrashes > 0
	last, err := etcdversion.Parse(r.LastUse.Version)
	next, _ := etcdversion.Parse(r.PodVersion)
	return started && err == nil && !last.AtLeast(next)
}

// otherUser returns the cluster that last used a replica's claim, such as a lost cluster whose claim came back. It
// returns zero if that cluster is the given one or is unknown.
func (r Replica) otherUser(id ID) ID {
	if r.LastUse.ClusterID == id {
		return 0
	}
	return r.LastUse.ClusterID
}

// lastVersion returns the etcd version that last ran on a replica, from its pod or else its claim.
func (r Replica) lastVersion() (etcdversion.Version, error) {
	if v, err := etcdversion.Parse(r.PodVersion); err == nil {
		return v, nil
	}
	return etcdversion.Parse(r.LastUse.Version)
}

// lastVersionUnknown returns a message if a cluster has only volumes left and too few of them, not even a quorum, show
// which etcd version last used them. Otherwise, it returns "". etcd converts its data to a newer minor version only
// when every voter runs that version; so if a quorum of the volumes names a version, the cluster's data is not newer.
func (s State) lastVersionUnknown() string {
	if s.hasStatefulSet() || s.anyReplica(hasPod) || !s.toRun() || !s.Formed() ||
		s.Record.Restoring() || s.Record.Recovering() || s.isBeingRestored() {
		return ""
	}
	var names, claims []string
	volumes := 0
	for _, r := range s.replicasInOrder() {
		if !hasVolume(r) || r.VolumeTerminating || r.LostCluster != 0 {
			continue
		}
		volumes++
		if _, err := r.lastVersion(); err != nil {
			names, claims = append(names, s.ReplicaName(r.Ordinal)), append(claims, "data-"+s.ReplicaName(r.Ordinal))
		}
	}
	if volumes == 0 || volumes-len(names) >= Quorum(volumes) {
		return ""
	}
	return fmt.Sprintf("the etcd version that last used the volumes of %s is unknown. Annotate their claims with "+
		"this version: kubectl annotate pvc %s etcd.quorate.dev/version=VERSION",
		Enumerate(names), strings.Join(claims, " "))
}
