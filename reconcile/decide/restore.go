package decide

import (
	"cmp"
	"time"
)

// SeedOrdinal is the slot of the member whose volume is filled from a backup. The other members join that member.
const SeedOrdinal = 0

// RestoreSource is the declared backup from which a new cluster is created.
type RestoreSource struct {
	// From describes the backup and its store. It is empty if the cluster is bootstrapped without data.
	From string `json:"from,omitempty"`
	// Digest is a digest of the whole declared restore.
	Digest string `json:"digest,omitempty"`
	// Deadline is the maximum duration of the restore Job.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// declared reports whether a restore is declared.
func (r RestoreSource) declared() bool { return r.Digest != "" }

// Restore is the observed state of the Job that fills the first member's volume from a backup.
type Restore struct {
	// Job is the existing Job, or nil.
	Job *RestoreJob `json:"job,omitempty"`
	JobSight
}

// RestoreJob is the Job that fills a volume from a backup.
type RestoreJob struct {
	VolumeJob
	// From is the declared source for which the Job was started.
	From string `json:"from,omitempty"`
	// Restored is the backup that the Job restored, once reported.
	Restored string `json:"restored,omitempty"`
	// Data describes the restored data, as reported by the Job.
	Data RestoredData `json:"data,omitzero"`
}

// RestoredData contains the values that a member started on restored data must report. Unknown values are zero.
type RestoredData struct {
	ClusterID ID `json:"clusterID,omitempty"`
	MemberID  ID `json:"memberID,omitempty"`
	// Revision is the revision at which etcd starts: the backup's revision, increased by the restore.
	Revision int64 `json:"revision,omitempty"`
}

// Restoring reports whether the cluster is being created from a backup: its first member's volume is being filled, and
// members do not run.
func (r Record) Restoring() bool {
	for _, m := range r.Members {
		if m.Mode == Restoring {
			return true
		}
	}
	return false
}

// Unproven reports whether the cluster was created from a backup, and its first member has not been observed running on
// the restored data yet.
func (r Record) Unproven() bool { return r.RestoredFrom != "" && r.ClusterID == 0 }

// RestoringRecord returns the record of a cluster that is about to be created from a backup, with one member.
func RestoringRecord(token string) Record {
	return Record{Token: token}.With(RecordedMember{Ordinal: SeedOrdinal, Mode: Restoring})
}

// RestoredRecord returns the record after action a: the first member starts only with the data in its volume.
func RestoredRecord(s State, a FinishRestore) Record {
	r := RequiredRecord(s, "")
	r.RestoredFrom, r.Restored, r.Uncompared = a.From, a.Data, true
	return r.With(RecordedMember{Ordinal: SeedOrdinal, Mode: Sealed, VolumeUID: a.VolumeUID})
}

// firstRecord returns the initial record of a cluster that does not exist yet.
func (s State) firstRecord(token string) Record {
	if s.Declared.Restore.declared() {
		return RestoringRecord(token)
	}
	return FoundingRecord(token, s.Declared.Replicas)
}

// restore fills the first member's volume from a backup. etcd does not run until the volume is filled, and existing
// data is never overwritten: the Job finds an empty volume, or its own earlier data.
func restore(s State) (Decision, bool) {
	switch {
	case !s.toRun():
		return Decision{}, false
	case s.Restore.Job != nil && s.delaysDeletion(s.Restore.Job.VolumeJob):
		return act(StopRestore{s.Restore.Job.UID}, jobDelaysDeletion, s.restoreJobName())
	case !s.Record.Restoring() || s.ReportedClusterID != 0:
		return Decision{}, false
	}
	seed, job := s.Replica(SeedOrdinal), s.Restore.Job
	switch {
	case s.besideRestore() != "":
		return block("according to the record, %s must be restored, but %s. Nothing is restored, because the existing "+
			"data may be the cluster's own. If it is not needed, delete it. If an older record was restored, remove "+
			"record.yaml from ConfigMap %s-members; the record is then rebuilt from the live state",
			s.ReplicaName(SeedOrdinal), s.besideRestore(), s.Name)
	case s.hasID():
		return Decision{}, false
	case job != nil && job.runs() && job.Digest != s.Declared.Restore.Digest:
		return act(StopRestore{job.UID}, "stopping Job %s: spec.restore has changed since it was started",
			s.restoreJobName())
	case !s.Declared.Restore.declared():
		return block("the cluster was being created from a backup, but git no longer names the backup. Declare " +
			"spec.restore, or delete the cluster and bootstrap it again without data")
	case seed.VolumeTerminating:
		return wait(recheck, "the volume of %s is being deleted", s.ReplicaName(SeedOrdinal))
	}
	if d, waits := s.Restore.hinders("cannot restore the data"); waits {
		return d, true
	}
	switch {
	case job == nil:
		from := s.Declared.Restore
		return act(StartRestore{from.Digest}, "restoring %s into the volume of %s", from.From,
			s.ReplicaName(SeedOrdinal))
	case job.Terminating:
		return wait(recheck, "Job %s is being deleted", s.restoreJobName())
	case !hasVolume(seed) || job.VolumeUID != seed.VolumeUID:
		return act(StopRestore{job.UID}, "the volume that Job %s was filling no longer exists; deleting the Job to "+
			"start again",
			s.restoreJobName())
	}
	return s.followRestore(*job)
}

// hasID reports whether any source has an ID or a member list for the cluster. If so, the cluster has formed, even if
// its record was reset.
func (s State) hasID() bool {
	return s.Record.ClusterID != 0 || s.ReportedClusterID != 0 || s.Membership.ClusterID != 0 ||
		len(s.Membership.Members) > 0 || s.anyReplica(inCluster)
}

func (s State) restoreJobName() string { return s.Name + "-restore" }

// isBeingRestored reports whether a Job fills the first member's volume of a cluster whose record was lost. The Job has
// not succeeded, so a member cannot have started on the volume.
func (s State) isBeingRestored() bool {
	job := s.Restore.Job
	return !s.recorded() && !s.hasID() && job != nil && job.Phase != JobSucceeded && s.besideRestore() == ""
}

// besideRestore returns the objects that a cluster being created from a backup cannot have, or "": a pod, a volume of
// any member except the first, or a record of other members. If such an object exists, an older record, from before the
// cluster formed, may have been restored.
func (s State) besideRestore() string {
	var facts []string
	if len(s.Record.Members) > 1 {
		facts = append(facts, "the record has other members")
	}
	for _, r := range s.replicasInOrder() {
		switch name := s.ReplicaName(r.Ordinal); {
		case hasPod(r):
			facts = append(facts, "the pod of "+name+" exists")
		case hasVolume(r) && r.Ordinal != SeedOrdinal:
			facts = append(facts, "a volume of "+name+" exists")
		}
	}
	return Enumerate(facts)
}

// followRestore returns the next step while a restore's Job works on the existing volume. A Job for an earlier
// declaration is started again even if it has ended, because its data may be invalid for the new declaration, for
// example for an older etcd version.
func (s State) followRestore(job RestoreJob) (Decision, bool) {
	switch {
	case s.Declared.Restore.Digest != job.Digest:
		return act(StopRestore{job.UID}, "the declaration has changed since Job %s was started; deleting the Job to "+
			"start again",
			s.restoreJobName())
	case job.Phase == JobSucceeded:
		from := cmp.Or(job.Restored, job.From, "a backup")
		return act(FinishRestore{s.Replica(SeedOrdinal).VolumeUID, from, job.Data},
			"%s has been restored: starting %s with it", from, s.ReplicaName(SeedOrdinal))
	case job.Phase == JobFailed:
		return block("Job %s failed: %s. Fix the cause and retry with kubectl delete job %[1]s, or change "+
			"spec.restore. To start with an empty volume, also run kubectl delete pvc data-%[3]s",
			s.restoreJobName(), cmp.Or(job.Message, "no reason reported"),
			s.ReplicaName(SeedOrdinal))
	case job.Message != "":
		return wait(recheck, "restoring %s: %s", job.From, job.Message)
	}
	return wait(recheck, "restoring %s", job.From)
}
