package decide

import (
	"cmp"
	"time"
)

// SeedOrdinal is the slot of the member whose volume is filled from a backup. The others join it.
const SeedOrdinal = 0

// RestoreSource is a backup that git wants a new cluster to be made from.
type RestoreSource struct {
	// From is the backup and its store, in words; empty: the cluster is founded without data.
	From string `json:"from,omitempty"`
	// Digest of all that is declared of the restore.
	Digest string `json:"digest,omitempty"`
	// Deadline is how long the Job that restores it may take.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// declared reports whether there is one.
func (r RestoreSource) declared() bool { return r.Digest != "" }

// Restore is what is seen of the Job that fills the first member's volume from a backup.
type Restore struct {
	// Job that is there; nil if there is none.
	Job *RestoreJob `json:"job,omitempty"`
	JobSight
}

// RestoreJob is the Job that fills a volume from a backup.
type RestoreJob struct {
	VolumeJob
	// From is that of the declaration that it was started for.
	From string `json:"from,omitempty"`
	// Restored says which backup it was, once it has said so.
	Restored string `json:"restored,omitempty"`
	// Data is what it says of what it has made of it.
	Data RestoredData `json:"data,omitzero"`
}

// RestoredData is what a member that starts on restored data has to show. What is not known is zero.
type RestoredData struct {
	ClusterID ID `json:"clusterID,omitempty"`
	MemberID  ID `json:"memberID,omitempty"`
	// Revision that etcd starts at: that of the backup, raised.
	Revision int64 `json:"revision,omitempty"`
}

// Restoring reports whether the cluster is being made from a backup: the volume of its first member is
// being filled, and no member runs.
func (r Record) Restoring() bool {
	for _, m := range r.Members {
		if m.Mode == Restoring {
			return true
		}
	}
	return false
}

// Unproven reports whether the cluster was made from a backup, and no pass has seen its first member run on
// what was restored.
func (r Record) Unproven() bool { return r.RestoredFrom != "" && r.ClusterID == 0 }

// RestoringRecord is the record of a cluster that is about to be made from a backup, with one member.
func RestoringRecord(token string) Record {
	return Record{Token: token}.With(RecordedMember{Ordinal: SeedOrdinal, Mode: Restoring})
}

// RestoredRecord is the record after action a: the first member starts on the data in its volume, or
// not at all.
func RestoredRecord(s State, a FinishRestore) Record {
	r := StandingRecord(s, "")
	r.RestoredFrom, r.Restored, r.Uncompared = a.From, a.Data, true
	return r.With(RecordedMember{Ordinal: SeedOrdinal, Mode: Sealed, VolumeUID: a.VolumeUID})
}

// firstRecord is the record that a cluster begins with of which there is nothing yet.
func (s State) firstRecord(token string) Record {
	if s.Declared.Restore.declared() {
		return RestoringRecord(token)
	}
	return FoundingRecord(token, s.Declared.Replicas)
}

// restore fills the volume of the first member from a backup. Etcd does not run meanwhile, and nothing
// that is there is ever overwritten: the Job finds an empty volume, or what it has restored before.
func restore(s State) (Decision, bool) {
	if !s.toRun() || !s.Record.Restoring() || s.ReportedClusterID != 0 {
		return Decision{}, false
	}
	seed, job := s.Replica(SeedOrdinal), s.Restore.Job
	switch {
	case s.besideRestore() != "":
		return block("the record says that %s is to be restored, and %s: nothing is restored beside what may be the "+
			"cluster's own; delete that if nobody needs it; if the record was put back, take record.yaml out of "+
			"ConfigMap %s-members, and it is made again from what is there", s.ReplicaName(SeedOrdinal),
			s.besideRestore(), s.Name)
	case s.hasID():
		return Decision{}, false
	case job != nil && job.runs() && job.Digest != s.Declared.Restore.Digest:
		return act(StopRestore{job.UID}, "stop Job %s: spec.restore has changed since it was started", s.restoreJobName())
	case !s.Declared.Restore.declared():
		return block("the cluster was to be made from a backup, and git does not say from which any more: " +
			"declare spec.restore, or delete the cluster to bootstrap one without data")
	case seed.VolumeTerminating:
		return wait(recheck, "the volume of %s is being deleted", s.ReplicaName(SeedOrdinal))
	}
	if d, waits := s.Restore.hinders("the data cannot be restored"); waits {
		return d, true
	}
	switch {
	case job == nil:
		from := s.Declared.Restore
		return act(StartRestore{from.Digest}, "restore %s into the volume of %s", from.From,
			s.ReplicaName(SeedOrdinal))
	case job.Terminating:
		return wait(recheck, "Job %s is being deleted", s.restoreJobName())
	case !hasVolume(seed) || job.VolumeUID != seed.VolumeUID:
		return act(StopRestore{job.UID}, "the volume that Job %s fills is gone: start again", s.restoreJobName())
	}
	return s.followRestore(*job)
}

// hasID reports whether anybody says that the cluster has an ID: then it has formed, whatever its record
// was put back to.
func (s State) hasID() bool {
	return s.Record.ClusterID != 0 || s.ReportedClusterID != 0 || s.Membership.ClusterID != 0 ||
		len(s.Membership.Members) > 0 || s.anyReplica(inCluster)
}

func (s State) restoreJobName() string { return s.Name + "-restore" }

// isBeingRestored reports whether a Job fills the first member's volume, of a cluster whose record was lost
// meanwhile: it has not ended well, so that no member has started on what it leaves.
func (s State) isBeingRestored() bool {
	job := s.Restore.Job
	return !s.recorded() && !s.hasID() && job != nil && job.Phase != JobSucceeded && s.besideRestore() == ""
}

// besideRestore says what is there that a cluster which is being made from a backup cannot have: a pod, or
// a volume but that of its only member; empty if there is nothing. The record may have been put back to
// what it was before the cluster formed: then this is the cluster.
func (s State) besideRestore() string {
	var facts []string
	if len(s.Record.Members) > 1 {
		facts = append(facts, "the record has other members")
	}
	for _, r := range s.replicasInOrder() {
		switch name := s.ReplicaName(r.Ordinal); {
		case hasPod(r):
			facts = append(facts, "the pod of "+name+" is there")
		case hasVolume(r) && r.Ordinal != SeedOrdinal:
			facts = append(facts, "a volume of "+name+" is there")
		}
	}
	return Enumerate(facts)
}

// followRestore follows the Job on the volume that is there. One that was started for another declaration
// is started again, although it may have ended: what is declared since, such as an older version of etcd,
// may be refused for what it has restored.
func (s State) followRestore(job RestoreJob) (Decision, bool) {
	switch {
	case s.Declared.Restore.Digest != job.Digest:
		return act(StopRestore{job.UID}, "the declaration has changed since Job %s was started: start again",
			s.restoreJobName())
	case job.Phase == JobSucceeded:
		from := cmp.Or(job.Restored, job.From, "a backup")
		return act(FinishRestore{s.Replica(SeedOrdinal).VolumeUID, from, job.Data},
			"%s is restored: let %s start with it", from, s.ReplicaName(SeedOrdinal))
	case job.Phase == JobFailed:
		return block("Job %s has failed: %s; cure that, and delete the Job to have it tried again: "+
			"kubectl delete job %[1]s; or change spec.restore; an empty volume is made if that is deleted as well: "+
			"kubectl delete pvc data-%[3]s", s.restoreJobName(), cmp.Or(job.Message, "it does not say why"),
			s.ReplicaName(SeedOrdinal))
	case job.Message != "":
		return wait(recheck, "restoring %s: %s", job.From, job.Message)
	}
	return wait(recheck, "restoring %s", job.From)
}
