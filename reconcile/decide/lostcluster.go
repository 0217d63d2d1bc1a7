package decide

// lostClusterRuns stops members of a lost cluster that run, or would start, alongside the cluster created from it. If
// an older record is restored, these members get their configuration files back. Enough of them would then form the
// lost cluster again, and clients would reach both clusters.
func lostClusterRuns(s State) (Decision, bool) {
	slots, lost := s.runsOfLost()
	if slots == 0 {
		return Decision{}, false
	}
	return act(StopReplicas{slots, lost}, "the volumes of %s belong to lost cluster %s, from which cluster %s was "+
		"created: stopping the pods and keeping the volumes. If an older record was restored, restore the newer "+
		"record in ConfigMap %s-members",
		Enumerate(s.replicaNames(func(r Replica) bool { return slots.Has(r.Ordinal) })), lost, s.madeOf(lost), s.Name)
}

// runsOfLost returns the slots with a pod on a volume of a lost cluster. Either the record is the lost cluster's, so
// that the pod has a file to start with, or the pod's member is running. A member listed by the new cluster belongs to
// it, regardless of marks.
func (s State) runsOfLost() (slots Ordinals, lost ID) {
	listed := s.listed()
	for _, r := range s.replicasInOrder() {
		mark := r.LostCluster
		if !hasVolume(r) || !hasPodThatStays(r) || mark == 0 || lost != 0 && mark != lost || s.madeOf(mark) == 0 {
			continue
		}
		if _, inUse := listed[r.Ordinal]; inUse && s.Membership.Known && s.Membership.ClusterID != mark {
			continue
		}
		_, recorded := s.Record.Member(r.Ordinal)
		starts := recorded && s.Record.ClusterID != s.madeOf(mark)
		gone, _ := s.Record.removed(r.Ordinal)
		kept := gone.LostCluster == mark && gone.VolumeUID == r.VolumeUID
		if r.ClusterID == mark || r.ClusterID == 0 && (starts || kept && isReady(r)) {
			slots, lost = slots.With(r.Ordinal), mark
		}
	}
	return slots, lost
}

// madeOf returns the cluster that was created from a lost cluster, according to the status or etcd, or zero. If the
// record and the status both name the lost cluster and no recovery is in progress, the recovery may have been
// abandoned: then etcd's ID counts only if a claim shows that the new cluster was recorded before.
func (s State) madeOf(lost ID) ID {
	givenUp := s.Record.ClusterID == lost && s.ReportedClusterID == lost && !s.Record.Recovering()
	for _, id := range []ID{s.ReportedClusterID, s.Membership.ClusterID} {
		used := func(r Replica) bool { return r.LastUse.ClusterID == id }
		if id != 0 && id != lost && (!givenUp || s.anyReplica(used)) {
			return id
		}
	}
	if s.Record.Supersedes(lost) {
		return s.Record.ClusterID
	}
	return 0
}

// StoppedRecord returns the record after action a: members in the slots have no file to start with, and their volumes
// are kept.
func StoppedRecord(s State, a StopReplicas) Record {
	r := s.catchUp(s.Record) // a formed cluster is never bootstrapped again
	for _, ordinal := range a.Ordinals.List() {
		r = r.keeping(s.Replica(ordinal), a.LostCluster)
	}
	return r
}
