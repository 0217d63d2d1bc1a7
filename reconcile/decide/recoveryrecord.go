package decide

import "slices"

// RecordedRecovery is a recovery that was begun. It is under way while ClusterID is that of the record.
type RecordedRecovery struct {
	// ClusterID of the cluster that is lost.
	ClusterID ID `json:"clusterID"`
	// Ordinal of the member that the new cluster begins with, and UID of the volume with its data.
	Ordinal   int    `json:"ordinal"`
	VolumeUID string `json:"volumeUID"`
	// FromBackup: it is made of a backup, and not of what is in the volume.
	FromBackup bool `json:"fromBackup,omitempty"`
	// Suspect: etcd had found, before the cluster was lost, that members hold different data. Whose are right,
	// nobody knows.
	Suspect bool `json:"suspect,omitempty"`
}

// Recovering reports whether a new cluster is being made in the place of this one. No member runs meanwhile.
func (r Record) Recovering() bool {
	return r.Recovery.ClusterID != 0 && r.Recovery.ClusterID == r.ClusterID
}

// Supersedes reports whether that is a cluster of which this one was made, or one that it was made of. A record that
// knows no ID supersedes none: what it is of may be that very cluster.
func (r Record) Supersedes(lost ID) bool {
	if lost == 0 || r.ClusterID == 0 || r.ClusterID == lost {
		return false
	}
	return r.Recovery.ClusterID == lost ||
		slices.ContainsFunc(r.Removed, func(gone RemovedMember) bool { return gone.LostCluster == lost })
}

// RecoveringRecord is the record of a cluster in whose place git has ordered to make a new one, in that volume.
func RecoveringRecord(s State, volumeUID string) Record {
	r := StandingRecord(s, "")
	order := s.Declared.Recovery
	r.Recovery = RecordedRecovery{ClusterID: r.ClusterID, Ordinal: order.Ordinal, VolumeUID: volumeUID,
		FromBackup: order.Backup != ""}
	return r
}

// RecoveredRecord is the record after action a: the member starts on the new data, or not at all; what
// others of the lost cluster have left is kept.
func RecoveredRecord(s State, a FinishRecovery) Record {
	r := StandingRecord(s, "")
	seed := r.Recovery.Ordinal
	r.ClusterID, r.Members, r.Confirmed = a.ClusterID, nil, nil
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
			// Kubernetes will make a volume here, since a higher ordinal is in use, and nobody needs it.
			r = r.WithRemoved(RemovedMember{Ordinal: ordinal})
		}
	}
	return r.With(RecordedMember{Ordinal: seed, Mode: Sealed, VolumeUID: a.VolumeUID})
}

// voidRecovery brings a record up to an order that came to nothing, since the cluster has a quorum: it is not
// to come into effect when that is lost another time, perhaps months later. If the record is lost, it is not
// known whether the order came to nothing before. One that git takes out and declares again is a new one.
func (s State) voidRecovery(r Record) Record {
	order := s.Declared.Recovery
	served := s.Membership.Known && order.ClusterID == s.Membership.ClusterID
	switch {
	case order.ClusterID == 0:
		r.VoidRecovery = ""
	case order.ClusterID != r.ClusterID || r.Recovering():
	case served || s.isVoid(order) || !s.recorded():
		r.VoidRecovery = order.Word
	}
	return r
}

// isVoid reports whether an order came to nothing, by the record or by the status, of which one may be older.
func (s State) isVoid(order RecoveryOrder) bool {
	return order.Word != "" && (order.Word == s.Record.VoidRecovery || order.Word == s.ReportedVoidRecovery)
}

// VoidRecoveryToReport is the Word of an order that came to nothing, for the status; empty if there is none.
func (s State) VoidRecoveryToReport() string {
	if s.Declared.Recovery.ClusterID == 0 {
		return ""
	}
	return StandingRecord(s, "").VoidRecovery
}

// keeping returns the record with the volume in a slot as one that is kept, as left of that cluster, or of
// an earlier one, if it was kept before.
func (r Record) keeping(slot Replica, lost ID) Record {
	if gone, known := r.removed(slot.Ordinal); known && gone.VolumeUID == slot.VolumeUID && gone.Kept() {
		lost = gone.LostCluster
	}
	return r.WithRemoved(RemovedMember{Ordinal: slot.Ordinal, VolumeUID: slot.VolumeUID, LostCluster: lost})
}

// leftOfLost reports whether the claim in a slot is marked to be left of a cluster that this one was made of.
// No mark says anything of a volume that is on record as that of a member, unless that record is of the lost
// cluster, and so older than what was made of it; if the status says so, too, the mark is wrong. Nor does it
// say anything of one that serves, which is somebody's member.
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

// keepLost brings a record up to the marks on claims: whoever has put it back, or lost it, no member starts
// on what is left of a lost cluster, since enough of those would be that cluster again. Whom etcd lists is
// one of its members, whatever a mark says.
func (s State) keepLost(r Record) Record {
	listed := s.listed()
	for _, slot := range s.replicasInOrder() {
		_, inUse := listed[slot.Ordinal]
		if hasVolume(slot) && s.leftOfLost(slot) && !(s.Membership.Known && inUse) && !r.Recovering() {
			r = r.keeping(slot, slot.LostCluster)
		}
	}
	return r
}

// takeUpRecovery makes good what a record has lost: passes start no Job for a cluster whose recovery is not
// on record. Others may, who may not stop members by that: nothing runs while one of a pass is at work, on
// the volume that stands in the slot; and unless all of the record is lost, git orders it, and the cluster has not had
// a quorum since.
func (s State) takeUpRecovery(r Record) Record {
	job := s.Recovery.Job
	if job == nil || job.ClusterID == 0 || job.ClusterID != r.ClusterID || r.Recovering() || s.Membership.Known {
		return r
	}
	slot := s.Replica(job.Ordinal)
	order := s.Declared.Recovery
	ordered := !s.isVoid(order) && (order.ClusterID == job.ClusterID || len(s.Record.Members) == 0)
	if !ordered || s.Objects.RunsReplicas > 0 || s.anyReplica(hasPod) || !hasVolume(slot) ||
		slot.VolumeUID != job.VolumeUID {
		return r
	}
	r.Recovery = RecordedRecovery{ClusterID: job.ClusterID, Ordinal: job.Ordinal, VolumeUID: job.VolumeUID,
		FromBackup: job.From != ""}
	return r
}

// mayBeRight says why a volume that is left of a lost cluster may hold the right data, and the cluster that was made of
// that the wrong ones; empty if nothing speaks for it. That no record says how it was made, as after that was lost, is
// a reason, too.
func (s State) mayBeRight(gone RemovedMember) string {
	switch made := s.Record.Recovery; {
	case made.ClusterID != gone.LostCluster:
		return "the record does not say any more whether etcd had found that its members hold different data, " +
			"and this may be the right one"
	case made.Suspect:
		return "etcd had found that its members hold different data, and this may be the right one"
	}
	return ""
}

// keeps reports whether a volume stays for now that is left of a lost cluster. Git gives up those of the
// cluster that it names. They go one at a time, each when a member is to take its place, and while all is
// well with those that there are: until then, they may hold the better copy.
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

// Keeps reports whether what the member that is gone from that slot has left stays for now.
func (s State) Keeps(ordinal int) bool {
	gone, _ := s.Record.removed(ordinal)
	return s.keeps(gone)
}
