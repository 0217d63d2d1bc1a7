package decide

import "slices"

// RecordedRecovery is a recovery that has begun. It is in progress while its ClusterID is the same as the record's.
type RecordedRecovery struct {
	// ClusterID is the ID of the lost cluster.
	ClusterID ID `json:"clusterID"`
	// Ordinal is the ordinal of the new cluster's first member, and VolumeUID the UID of the volume with its data.
	Ordinal   int    `json:"ordinal"`
	VolumeUID string `json:"volumeUID"`
	// FromBackup is true if the source is a backup instead of the data in the volume.
	FromBackup bool `json:"fromBackup,omitempty"`
	// Suspect is true if etcd had found, before the cluster was lost, that members hold different data. Which data is
	// right is unknown.
	Suspect bool `json:"suspect,omitempty"`
}

// Recovering reports whether a new cluster is being created to replace this cluster. Until it exists, members do not
// run.
func (r Record) Recovering() bool {
	return r.Recovery.ClusterID != 0 && r.Recovery.ClusterID == r.ClusterID
}

// Supersedes reports whether this cluster was created from the lost cluster, directly or indirectly. A record without
// an ID does not supersede any cluster: it may belong to the lost cluster itself.
func (r Record) Supersedes(lost ID) bool {
	if lost == 0 || r.ClusterID == 0 || r.ClusterID == lost {
		return false
	}
	return r.Recovery.ClusterID == lost ||
		slices.ContainsFunc(r.Removed, func(gone RemovedMember) bool { return gone.LostCluster == lost })
}

// RecoveringRecord returns the record of a cluster that, at git's request, is about to be replaced with a new cluster
// in the given volume.
func RecoveringRecord(s State, volumeUID string) Record {
	r := RequiredRecord(s, "")
	order := s.Declared.Recovery
	r.Recovery = RecordedRecovery{ClusterID: r.ClusterID, Ordinal: order.Ordinal, VolumeUID: volumeUID,
		FromBackup: order.Backup != ""}
	return r
}

// RecoveredRecord returns the record after action a: the member starts only with the new data; the volumes of the lost
// cluster's other members are kept.
func RecoveredRecord(s State, a FinishRecovery) Record {
	r := RequiredRecord(s, "")
	seed := r.Recovery.Ordinal
	r.ClusterID, r.Members = a.ClusterID, nil
	if job := s.Recovery.Job; job != nil {
		r.Recovery.Suspect = job.Suspect
		if r.Recovery.FromBackup {
			r.RestoredFrom, r.Uncompared = job.Restored, true
		}
	}
	for _, slot := range s.replicasInOrder() {
		if slot.Ordinal != seed && hasVolume(slot) {
			r = r.keeping(slot, r.Recovery.ClusterID)
		}
	}
	for ordinal := range seed {
		if !hasVolume(s.Replica(ordinal)) && s.Declared.Recovery.Lost.Has(ordinal) {
			// Kubernetes will create an unneeded volume here, because a higher ordinal is in use.
			r = r.WithRemoved(RemovedMember{Ordinal: ordinal})
		}
	}
	return r.With(RecordedMember{Ordinal: seed, Mode: Sealed, VolumeUID: a.VolumeUID})
}

// voidRecovery records that a request has no effect because the cluster has a quorum: it must not take effect when
// quorum is lost again, perhaps months later. If the record is lost, it is unknown whether the request was void before,
// so it is recorded as void. A request that is removed from git and declared again is a new request.
func (s State) voidRecovery(r Record) Record {
	order := s.Declared.Recovery
	served := s.Membership.MayServe() && order.ClusterID == s.Membership.ClusterID
	switch {
	case order.ClusterID == 0:
		r.VoidRecovery = ""
	case r.ClusterID != 0 && r.ClusterID != order.ClusterID || r.Recovering():
	case served || s.isVoid(order) || s.recordLost():
		r.VoidRecovery = order.Word
	}
	return r
}

// isVoid reports whether a request had no effect, according to the record or the status; either may be outdated.
func (s State) isVoid(order RecoveryOrder) bool {
	return order.Word != "" && (order.Word == s.Record.VoidRecovery || order.Word == s.ReportedVoidRecovery)
}

// VoidRecoveryToReport returns the Word of a request that had no effect, for the status, or "".
func (s State) VoidRecoveryToReport() string {
	return RequiredRecord(s, "").VoidRecovery
}

// keeping returns the record with a slot's volume kept for the lost cluster, or for an earlier lost cluster if the
// volume was already kept.
func (r Record) keeping(slot Replica, lost ID) Record {
	if gone, _ := r.removed(slot.Ordinal); gone.VolumeUID == slot.VolumeUID && gone.Kept() {
		lost = gone.LostCluster
	}
	return r.WithRemoved(RemovedMember{Ordinal: slot.Ordinal, VolumeUID: slot.VolumeUID, LostCluster: lost})
}

// leftOfLost reports whether a slot's claim is marked as belonging to a lost cluster from which this cluster was
// created. The mark of a member's recorded volume does not count, unless the record belongs to the lost cluster and is
// therefore older than the new one. If the status also names that cluster, the mark is wrong. The mark of a ready
// replica does not count either: the replica belongs to a member.
func (s State) leftOfLost(r Replica) bool {
	m, _ := s.Record.Member(r.Ordinal)
	if isReady(r) {
		return false
	}
	if m.VolumeUID != "" && m.VolumeUID == r.VolumeUID {
		return r.LostCluster != 0 && r.LostCluster == s.Record.ClusterID && r.LostCluster != s.ReportedClusterID
	}
	return r.LostCluster != 0
}

// keepLost updates a record from the marks on claims: even if the record was reset or lost, members must not start on a
// lost cluster's data, because enough such members would form the lost cluster again. A listed member is a member of
// this cluster, regardless of marks.
func (s State) keepLost(r Record) Record {
	for _, slot := range s.replicasInOrder() {
		if !hasVolume(slot) || !s.leftOfLost(slot) || r.Recovering() {
			continue
		}
		if _, inUse := s.listedAt(slot.Ordinal); !s.Membership.Known || !inUse {
			r = r.keeping(slot, slot.LostCluster)
		}
	}
	return r
}

// takeUpRecovery restores a recovery that the record has lost, because passes start Jobs only for recorded recoveries.
// A Job not created by Quorate must not stop members. Therefore the Job must use the slot's current volume, and git
// must request the recovery, unless the whole record is lost. In addition, the request must not be void, this cluster
// must not have a quorum, and no other cluster may have used the claims. Pods may run only if the record and the
// StatefulSet were restored during the recovery.
func (s State) takeUpRecovery(r Record) Record {
	job := s.Recovery.Job
	if job == nil || job.ClusterID == 0 || job.ClusterID != r.ClusterID || r.Recovering() || s.Membership.MayServe() {
		return r
	}
	over := len(s.usedByOthers(job.ClusterID)) > 0
	slot := s.Replica(job.Ordinal)
	order := s.Declared.Recovery
	ordered := !s.isVoid(order) && (order.ClusterID == job.ClusterID || s.recordLost())
	if over || !ordered || !s.nothingRuns() && !s.restoredDuring(*job) || !hasVolume(slot) ||
		slot.VolumeUID != job.VolumeUID {
		return r
	}
	r.Recovery = RecordedRecovery{ClusterID: job.ClusterID, Ordinal: job.Ordinal, VolumeUID: job.VolumeUID,
		FromBackup: job.From != ""}
	return r
}

// restoredDuring reports whether the record and the StatefulSet date from before a recovery that git still requests and
// that the Job carries out: the status does not name a different cluster yet, the new cluster has not used any claim,
// and pods are not ready.
func (s State) restoredDuring(job RecoveryJob) bool {
	order := s.Declared.Recovery
	same := order.ClusterID == job.ClusterID && order.Digest == job.Digest && s.ReportedClusterID == job.ClusterID
	return same && !s.Membership.HasQuorum() && !s.anyReplica(func(r Replica) bool {
		return isReady(r) || job.Into != 0 && r.LastUse.ClusterID == job.Into
	})
}

// mayBeRight returns why a lost cluster's volume may hold the right data, and the cluster created from it the wrong
// data, or "". A record that does not describe how the new cluster was created, for example because the record was
// lost, is also a reason.
func (s State) mayBeRight(gone RemovedMember) string {
	switch made := s.Record.Recovery; {
	case made.ClusterID != gone.LostCluster:
		return "the record no longer shows whether etcd had found that the lost members held different data, so this " +
			"volume may hold the right data"
	case made.Suspect:
		return "etcd had found that the lost members held different data, so this volume may hold the right data"
	}
	return ""
}

// keeps reports whether a lost cluster's volume is kept for now. Git may request the deletion of the old volumes of the
// cluster named in spec.recovery. They are deleted one at a time, each when a new member is about to use the slot and
// all existing members are healthy. Until then, they may hold the better copy.
func (s State) keeps(gone RemovedMember) bool {
	order := s.Declared.Recovery
	switch {
	case !gone.Kept():
		return false
	case order.ClusterID != gone.LostCluster || order.OldVolumes != Delete || s.Record.ClusterID == gone.LostCluster,
		s.mayBeRight(gone) != "":
		return true
	}
	next, free := s.freeOrdinal()
	return !s.settled() || free && next != gone.Ordinal
}

// Keeps reports whether the volume of a slot's removed member is kept for now.
func (s State) Keeps(ordinal int) bool {
	gone, _ := s.Record.removed(ordinal)
	return s.keeps(gone)
}
