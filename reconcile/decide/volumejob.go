package decide

// JobSight is the observed context of a Job that works on a volume.
type JobSight struct {
	// Foreign describes an unmanaged Job that has the name of this Job, or is empty.
	Foreign string `json:"foreign,omitempty"`
	// Hidden is why it is unknown whether the Job exists, or empty.
	Hidden string `json:"hidden,omitempty"`
	// Stopping are pods of earlier Jobs that may still write to the volume.
	Stopping []string `json:"stopping,omitempty"`
}

// VolumeJob is a Job that works on the data in a volume.
type VolumeJob struct {
	UID string `json:"uid"`
	// Digest is the digest of the declaration that the Job was started for.
	Digest string `json:"digest"`
	// VolumeUID is the UID of the volume on which the Job works.
	VolumeUID string   `json:"volumeUID"`
	Phase     JobPhase `json:"phase"`
	// Terminating is true if the Job is being deleted.
	Terminating bool `json:"terminating,omitempty"`
	// Message is why the Job failed or is waiting, if known.
	Message string `json:"message,omitempty"`
}

// runs reports whether the Job is running, or about to run, and is not being deleted.
func (j VolumeJob) runs() bool { return j.Phase == JobRuns && !j.Terminating }

// hinders returns what prevents starting or following a Job. what describes the consequence of an unmanaged Job.
func (j JobSight) hinders(what string) (Decision, bool) {
	switch {
	case j.Hidden != "":
		return wait(recheck, "it is unknown whether a Job is running: %s", j.Hidden)
	case j.Foreign != "":
		return block("%s: %s", what, j.Foreign)
	case len(j.Stopping) > 0:
		return wait(recheck, "pods of an earlier Job still exist: %s", Enumerate(j.Stopping))
	}
	return Decision{}, false
}

// jobDelaysDeletion is the message for deleting a Job that has ended: Kubernetes does not create a member's new volume
// while the Job's pod keeps the earlier volume.
const jobDelaysDeletion = "deleting Job %s, which has ended: its pod is delaying the deletion of a volume"

// delaysDeletion reports whether a Job has ended and its volume, whose data is not needed, is being deleted.
func (s State) delaysDeletion(j VolumeJob) bool {
	return j.Phase != JobRuns && !j.Terminating && s.anyReplica(func(r Replica) bool {
		return r.VolumeTerminating && r.VolumeUID == j.VolumeUID && s.dispensable(r.Ordinal)
	})
}

// dispensable reports whether the data in a slot's volume also exists elsewhere, or is not needed: etcd has a quorum,
// and the copy is not needed to determine which data is right; git declares the data lost; or the data comes from a
// backup, and no member has started on it yet.
func (s State) dispensable(ordinal int) bool {
	m, _ := s.Record.Member(ordinal)
	order := s.Declared.Recovery
	listed, isListed := s.listedAt(ordinal)
	elsewhere := s.Membership.Known && !(isListed && s.copyCounts(listed))
	givenUp := order.ClusterID != 0 && order.ClusterID == s.Record.ClusterID && order.Lost.Has(ordinal) &&
		order.Refused == "" && !s.isVoid(order)
	restoring := m.Mode == Restoring && s.besideRestore() == "" && !s.hasID()
	fromBackup := restoring || s.Record.Recovering() && s.Record.Recovery.FromBackup &&
		s.Record.Recovery.Ordinal == ordinal
	return elsewhere || givenUp || fromBackup
}
