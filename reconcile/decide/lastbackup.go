package decide

import (
	"cmp"
	"fmt"
	"time"
)

// LateBackup is the time that a backup may take, in addition to its deadline, to begin and to be observed.
const LateBackup = 10 * time.Minute

// backUpBeforeDeletion takes the final backup of a cluster that will be deleted, if git requires it. Until that backup
// exists and is in the status, nothing is stopped, and members that fail are not replaced.
func backUpBeforeDeletion(s State) (Decision, bool) {
	if !s.lacksLastBackup() {
		return Decision{}, false
	}
	const before, occasion = "before the cluster is deleted", "Deletion"
	job, _ := s.startedBackup()
	switch {
	case s.Objects.DeclarationDiffers: // the backup belongs to this declaration
		return act(Declare{}, "updating the custom resource: the cluster will be deleted")
	case !s.recorded():
		return block("cannot delete the cluster yet: the required backup cannot be taken, because the record is lost. "+
			"Declare lifecycle Running to bring %s back with the existing data, or recover the cluster from a volume; "+
			"or, if the backup is not needed, remove %s from spec.backup.before", s.describeRemains(), occasion)
	case s.takenBackup() != nil:
		return wait(recheckSettling, "cannot delete the cluster yet: waiting for Job %s's backup to be "+
			"recorded in the status", s.takenBackup().Job)
	case s.mayStartBackup():
		return act(StartBackup{Generation: s.Generation}, "taking a backup %s", before)
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPod):
		return block("cannot delete the cluster yet: the required backup cannot be taken, because the cluster is not "+
			"running. Declare lifecycle Running first, or remove %s from spec.backup.before", occasion)
	case s.canBackUp() && s.outlasted(job):
		return act(DiscardBackup{job.UID}, "taking another backup %s: Job %s ended too long ago, and no pass used its "+
			"backup within %s of its start. Run Quorate with --until-converged so that a run is still active when "+
			"the next backup completes",
			before, job.Name, s.lastsFor())
	case s.canBackUp() && job.Phase == JobSucceeded && s.yetToCome(job):
		return act(DiscardBackup{job.UID}, "taking another backup %s: Job %s was created at %s, which is in the future",
			before, job.Name, job.CreatedAt.UTC().Format(time.RFC3339))
	case job.Name == "" && !s.Membership.Known:
		return s.describeUnreachable(before, occasion)
	}
	lack, ends := s.describeAwaitedBackup(occasion)
	if ends {
		return wait(recheck, "%s", lack)
	}
	return block("%s", lack)
}

// describeUnreachable reports that a backup cannot be taken because the members are unreachable, and blocks if they
// will not come back by themselves.
func (s State) describeUnreachable(before, occasion string) (Decision, bool) {
	lack := fmt.Sprintf("cannot take the backup required %s: etcd does not return a member list%s: %s", before, s.why(),
		s.describeReplicas())
	for _, guard := range []func(State) (Decision, bool){quorumLost, membershipUnknown} {
		if d, spoke := guard(s); spoke && d.Verdict == Block {
			return block("%s. Fix this, or remove %s from spec.backup.before", lack, occasion)
		}
	}
	return wait(recheck, "%s", lack)
}

// lacksLastBackup reports whether the cluster will be deleted and must wait for its final backup. A cluster that never
// formed does not need a final backup. If the volumes are also deleted, they are deleted before the record, because
// only the record shows that their data was backed up.
func (s State) lacksLastBackup() bool {
	if !s.toDelete() || !s.Declared.BacksUpBeforeDeletion || !s.Formed() {
		return false
	}
	nothingToLose := !s.recorded() && !s.hasStatefulSet() && !(s.deletesVolumes() && s.anyReplica(staysToDelete))
	return !nothingToLose && !s.isLastBackup(s.Backups.BeforeDeletion)
}

// staysToDelete reports whether a slot has a volume that is not being deleted yet.
func staysToDelete(r Replica) bool { return hasVolume(r) && !r.VolumeTerminating }

// isLastBackup reports whether deletion may rely on a backup in the status. While the cluster serves, writes after the
// backup would be lost, so it must be recent.
func (s State) isLastBackup(b *Backup) bool {
	return b != nil && !s.Objects.DeclarationDiffers && s.Generation != 0 && b.Generation == s.Generation &&
		s.isOurs(*b) && b.To == s.Declared.BackupTo && !(s.serves() && s.tooLongAgo(b.StartedAt))
}

// BackupBeforeDeletion returns, for the status, the backup on which deletion of this generation relies, or nil. It
// outlives the Job that took it. A backup that has become too old while the cluster serves does not count again once
// someone else has stopped the pods.
func (s State) BackupBeforeDeletion() *Backup {
	noted := s.Backups.BeforeDeletion
	if s.toDelete() && s.Declared.BacksUpBeforeDeletion && !s.isLastBackup(noted) {
		if noted != nil && s.serves() && s.tooLongAgo(noted.StartedAt) {
			noted = nil
		}
		noted = cmp.Or(s.takenBackup(), noted)
	}
	if noted == nil || noted.Generation != s.Generation {
		return nil
	}
	return noted
}

// takenBackup returns a backup of this generation on which deletion may rely once it is in the status, or nil.
func (s State) takenBackup() *Backup {
	for _, b := range s.Backups.all() {
		if !s.isOfGeneration(b) || s.tooLongAgo(b.StartedAt) {
			continue
		}
		if b.Generation = s.Generation; s.isLastBackup(&b) {
			return &b
		}
	}
	return nil
}

// isOfGeneration reports whether a backup is from the Job that a pass started for this generation, even if Kubernetes
// has since deleted the Job, or began after that Job was created.
func (s State) isOfGeneration(b Backup) bool {
	job, started := s.startedBackup()
	return s.Generation != 0 && b.Generation == s.Generation || started && !b.StartedAt.Before(job.CreatedAt)
}

// serves reports whether clients may still write, because Quorate has not started to stop the pods.
func (s State) serves() bool {
	return s.Objects.RunsReplicas > 0 || !s.hasStatefulSet() && s.anyReplica(hasPodThatStays)
}

// outlasted reports whether a Job has succeeded, but too long ago for its backup to be used.
func (s State) outlasted(job BackupJob) bool {
	return job.Phase == JobSucceeded &&
		(s.tooLongAgo(job.EndedAt) || job.Backup != nil && s.tooLongAgo(job.Backup.StartedAt))
}

// yetToCome reports whether a Job's creation time is in the future because clocks were set back. Its backup would look
// new once that time has come.
func (s State) yetToCome(job BackupJob) bool { return YetToCome(job.CreatedAt, s.Now) }

// tooLongAgo reports whether a backup that began at the given time is too old: it does not contain later writes,
// however late it was stored.
func (s State) tooLongAgo(begin time.Time) bool {
	return s.Now.Sub(begin) > s.lastsFor()
}

// lastsFor returns how long, counted from the start of a backup, a deletion may rely on that backup.
func (s State) lastsFor() time.Duration { return s.Declared.BackupDeadline + LateBackup }
