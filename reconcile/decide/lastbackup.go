package decide

import (
	"cmp"
	"fmt"
	"time"
)

// LateBackup is how much longer than its deadline a backup may take to begin, and to be seen.
const LateBackup = 10 * time.Minute

// backUpBeforeDeletion takes the last backup of a cluster that is to be deleted, where git wants one, and
// stops nothing before it is there, and in the status. Members that fail meanwhile are not replaced.
func backUpBeforeDeletion(s State) (Decision, bool) {
	if !s.lacksLastBackup() {
		return Decision{}, false
	}
	const before, occasion = "before the cluster is deleted", "Deletion"
	job, _ := s.startedBackup()
	switch {
	case s.Objects.DeclarationDiffers: // the backup is that of this declaration
		return act(Declare{}, "write down that the cluster is to be deleted")
	case !s.recorded():
		return block("%s, a backup is to be taken, and none can be, since the record is lost: declare Running, which "+
			"brings back %s on the data that is there, or recover that from a volume; or, if nobody needs it, take %s "+
			"out of spec.backup.before", before, s.describeRemains(), occasion)
	case s.takenBackup() != nil:
		return wait(recheckSettling, "%s: the backup of Job %s is noted in the status", before, s.takenBackup().Job)
	case s.mayStartBackup():
		return act(StartBackup{s.Generation}, "%s: take a backup", before)
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPod):
		return block("%s, a backup is to be taken, and none can be of what does not run; declare Running first, "+
			"or take %s out of spec.backup.before", before, occasion)
	case s.canBackUp() && s.outlasted(job):
		return act(DiscardBackup{job.UID}, "%s: Job %s ended too long ago: have another backup taken; no pass has "+
			"gone by it within %s of when it was begun, so let a run stay for the next one, with --until-converged",
			before, job.Name, s.lastsFor())
	case s.canBackUp() && job.Phase == JobSucceeded && s.yetToCome(job):
		return act(DiscardBackup{job.UID}, "%s: Job %s was made at %s, which is yet to come: have another backup taken",
			before, job.Name, job.CreatedAt.UTC().Format(time.RFC3339))
	case job.Name == "" && !s.Membership.Known:
		return s.describeUnreachable(before, occasion)
	}
	lack, ends := s.describeAwaitedBackup(before, occasion)
	if ends {
		return wait(recheck, "%s", lack)
	}
	return block("%s", lack)
}

// describeUnreachable says why no backup can be taken of a cluster whose members nobody hears of, and leaves
// it to a person where they do not come back by themselves.
func (s State) describeUnreachable(before, occasion string) (Decision, bool) {
	lack := fmt.Sprintf("%s, a backup is to be taken, and etcd gives no member list%s: %s", before, s.why(),
		s.describeReplicas())
	for _, guard := range []func(State) (Decision, bool){quorumLost, membershipUnknown} {
		if d, spoke := guard(s); spoke && d.Verdict == Block {
			return block("%s; cure that, or take %s out of spec.backup.before", lack, occasion)
		}
	}
	return wait(recheck, "%s", lack)
}

// lacksLastBackup reports whether the cluster is to be deleted, and has to wait for its last backup. One
// that never formed has nothing to be backed up. Where the volumes go as well, they go before the record:
// without one, nothing says that there was a backup of what is on those that are there.
func (s State) lacksLastBackup() bool {
	if !s.toDelete() || !s.Declared.BacksUpBeforeDeletion || !s.Formed() {
		return false
	}
	nothingToLose := !s.recorded() && !s.hasStatefulSet() && !(s.deletesVolumes() && s.anyReplica(staysToDelete))
	return !nothingToLose && !s.isLastBackup(s.Backups.BeforeDeletion)
}

// staysToDelete reports whether a slot has a volume that nobody is deleting yet.
func staysToDelete(r Replica) bool { return hasVolume(r) && !r.VolumeTerminating }

// isLastBackup reports whether a deletion may go by what the status says of a backup. While the cluster
// serves, what is written since is lost with it, so that it must be recent.
func (s State) isLastBackup(b *Backup) bool {
	return b != nil && !s.Objects.DeclarationDiffers && s.Generation != 0 && b.Generation == s.Generation &&
		s.isOurs(*b) && b.To == s.Declared.BackupTo && !(s.serves() && s.tooLongAgo(b.StartedAt))
}

// BackupBeforeDeletion is what the status is to say of the backup that the deletion of this generation goes by,
// which outlasts the Job that took it; nil if there is none.
func (s State) BackupBeforeDeletion() *Backup {
	noted := s.Backups.BeforeDeletion
	if s.toDelete() && s.Declared.BacksUpBeforeDeletion && !s.isLastBackup(noted) {
		noted = cmp.Or(s.takenBackup(), noted)
	}
	if noted == nil || noted.Generation != s.Generation {
		return nil
	}
	return noted
}

// takenBackup is a backup that a deletion may go by once the status says so, as of this generation; nil if there
// is none.
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

// isOfGeneration reports whether a backup is that of the Job that a pass has started for this generation,
// whether or not Kubernetes has deleted that since, or was begun after it.
func (s State) isOfGeneration(b Backup) bool {
	job, started := s.startedBackup()
	return s.Generation != 0 && b.Generation == s.Generation || started && !b.StartedAt.Before(job.CreatedAt)
}

// serves reports whether clients may go on writing: nobody has begun to stop the pods.
func (s State) serves() bool {
	return s.Objects.RunsReplicas > 0 || !s.hasStatefulSet() && s.anyReplica(hasPodThatStays)
}

// outlasted reports whether a Job has ended well, and too long ago for what it has stored.
func (s State) outlasted(job BackupJob) bool {
	return job.Phase == JobSucceeded &&
		(s.tooLongAgo(job.EndedAt) || job.Backup != nil && s.tooLongAgo(job.Backup.StartedAt))
}

// yetToCome reports whether a Job was made at a time that has not come: clocks have been set back since. Once that time
// has come, what it has stored would look new.
func (s State) yetToCome(job BackupJob) bool { return YetToCome(job.CreatedAt, s.Now) }

// tooLongAgo reports whether a backup that was begun then is no longer one of what there is: what was written since is
// not in it, however late it was stored.
func (s State) tooLongAgo(begin time.Time) bool {
	return s.Now.Sub(begin) > s.lastsFor()
}

// lastsFor is how long a deletion may go by a backup since that was begun.
func (s State) lastsFor() time.Duration { return s.Declared.BackupDeadline + LateBackup }
