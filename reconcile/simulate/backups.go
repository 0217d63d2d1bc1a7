package simulate

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backups holds the backup Jobs and their results.
type backups struct {
	jobs []backupJob
	// refused is true if the store rejects all backups.
	refused bool
	// generation is the generation of the custom resource. declaredAt is the time when its etcd version last changed.
	generation int64
	declaredAt time.Time
	// newest is the newest backup taken by a Job.
	newest *decide.Backup
	// deletedAt is when the lifecycle last changed. If the lifecycle is Deleted, deletion was declared at that time.
	deletedAt time.Time
}

// backupJob is a Job and the UID of the custom resource that owns it.
type backupJob struct {
	decide.BackupJob
	owner string
	wait  int // ticks
}

// attemptsOfJob is the number of ticks after which Kubernetes marks a Job as failed.
const attemptsOfJob = 6

// RefuseBackups makes the store reject all backups, or accept them again.
func (w *World) RefuseBackups(refused bool) { w.backups.refused = refused }

// ForgetBackups deletes all Jobs, as Kubernetes deletes Jobs that ended long ago.
func (w *World) ForgetBackups() { w.backups.jobs = nil }

// ScheduleBackup starts a scheduled Job, as the CronJob does independently of passes.
func (w *World) ScheduleBackup() {
	if w.Declared.BacksUp && w.exists(w.customResource()) {
		w.startJob(decide.BackupJob{Name: w.name + "-backup-" + w.next("j")})
	}
}

func (w *World) startBackup(a decide.StartBackup) []write {
	name := fmt.Sprintf("%s-backup-gen%d", w.name, a.Generation)
	if !a.DiffersSince.IsZero() {
		name = w.name + "-backup-" + a.DiffersSince.Format(decide.SlotLayout)
	}
	started := func(j backupJob) bool { return j.Name == name }
	outdated := a.DiffersSince.IsZero() && a.Generation != w.backups.generation
	if outdated || slices.ContainsFunc(w.backups.jobs, started) {
		return nil
	}
	return []write{{"Job " + name, func() {
		w.startJob(decide.BackupJob{Name: name, Generation: a.Generation, DiffersSince: a.DiffersSince})
	}}}
}

func (w *World) startJob(j decide.BackupJob) {
	j.UID, j.Phase, j.CreatedAt = fmt.Sprintf("%s of %d", j.Name, w.now.Unix()), decide.JobRuns, w.now
	w.backups.jobs = append(w.backups.jobs, backupJob{j, w.objects[w.customResource()].uid, 1 + w.delay(2)})
}

func (w *World) discardBackup(a decide.DiscardBackup) []write {
	seen := func(j backupJob) bool { return j.UID == a.JobUID }
	i := slices.IndexFunc(w.backups.jobs, seen)
	if i < 0 {
		return nil
	}
	return []write{{"delete Job " + w.backups.jobs[i].Name, func() {
		w.backups.jobs = slices.DeleteFunc(slices.Clone(w.backups.jobs), seen)
	}}}
}

// fromBackups copies the Jobs and the newest recorded backup from a state.
func (w *World) fromBackups(s decide.State) {
	w.backups.generation, w.status.backup, w.status.lastBackup = s.Generation, s.Backups.Last, s.Backups.BeforeDeletion
	w.backups.newest = decide.NewerBackup(s.Backups.BeforeDeletion, s.Backups.Last)
	for _, j := range s.Backups.Jobs {
		w.backups.newest = decide.NewerBackup(w.backups.newest, j.Backup)
		owner := w.objects[w.customResource()].uid
		w.backups.jobs = append(w.backups.jobs, backupJob{BackupJob: j, owner: owner, wait: 1})
	}
}

// declare updates the generation as Kubernetes does when the custom resource is written. changed is true if the custom
// resource had been changed manually.
func (w *World) declare(isNew, changed bool) {
	if isNew {
		w.backups.generation = 0
	}
	if isNew || w.applied.Version != w.Declared.Version {
		w.backups.declaredAt = w.now
	}
	if isNew || w.applied.Lifecycle != w.Declared.Lifecycle {
		w.backups.deletedAt = w.now
	}
	if isNew || changed || !sameDeclaration(w.applied, w.Declared) {
		w.backups.generation++
	}
	w.applied = w.Declared
}

// runBackups advances the backup Jobs. A Job succeeds once etcd has quorum and the store accepts the backup,
// which the Job verifies if the spec requires it.
func (w *World) runBackups() {
	r, id := w.reachable()
	for i := range w.backups.jobs {
		j := &w.backups.jobs[i]
		if j.Phase != decide.JobRuns {
			continue
		}
		if j.wait--; j.wait > 0 {
			continue
		}
		switch {
		case r != nil && !w.backups.refused:
			j.Phase, j.EndedAt = decide.JobSucceeded, w.now
			j.Backup = &decide.Backup{Job: j.Name, Generation: j.Generation, Slot: j.CreatedAt, StartedAt: j.CreatedAt,
				FinishedAt: w.now, To: w.applied.BackupTo, ClusterID: id, Verified: w.applied.VerifiesBackups}
			w.backups.newest = j.Backup
		case w.now.Sub(j.CreatedAt) >= attemptsOfJob*TickLength:
			j.Phase, j.EndedAt, j.Message = decide.JobFailed, w.now, "the store rejects the request"
		}
	}
}

// seenBackups returns the backups as a pass observes them.
func (w *World) seenBackups() decide.Backups {
	var seen decide.Backups
	if w.exists(w.customResource()) {
		seen.Last, seen.BeforeDeletion = w.status.backup, w.status.lastBackup
	}
	for _, j := range w.backups.jobs {
		seen.Jobs = append(seen.Jobs, j.BackupJob)
		seen.Last = decide.NewerBackup(seen.Last, j.Backup)
	}
	return seen
}

// collectJobs deletes the Jobs that owner does not own.
func (w *World) collectJobs(owner string) {
	w.backups.jobs = slices.DeleteFunc(slices.Clone(w.backups.jobs), func(j backupJob) bool { return j.owner != owner })
}

// judgeUpgrade records a violation if an upgrade begins without a backup that started after the upgrade was declared,
// although the spec requires the backup and etcd can be reached.
func (w *World) judgeUpgrade(version string) {
	r, _ := w.reachable()
	if !w.Declared.BacksUpBeforeUpgrade || version == w.set.version || r == nil {
		return
	}
	for _, p := range w.pods {
		if p.version == version {
			return // the upgrade is being reverted
		}
	}
	if !w.backedUpSince(w.backups.declaredAt) {
		w.violate("etcd %s is rolled out without the required backup", version)
	}
}

// judgeLastBackup records a violation if a formed cluster is stopped or deleted without a final backup that the spec
// requires. The backup must have started after the deletion was declared, and must be recent when the cluster stops.
func (w *World) judgeLastBackup(formed, stops bool) {
	if w.Declared.Lifecycle != decide.Deleted || !w.Declared.BacksUpBeforeDeletion || !formed {
		return
	}
	newest := w.backups.newest
	old := newest != nil && w.now.Sub(newest.StartedAt) > w.Declared.BackupDeadline+decide.LateBackup
	switch {
	case newest == nil || newest.StartedAt.Before(w.backups.deletedAt):
		w.violate("the cluster is deleted without the required backup")
	case newest.To != w.Declared.BackupTo:
		w.violate("the cluster is deleted, but its last backup is in %s", newest.To)
	case stops && old:
		w.violate("the cluster is stopped, although its last backup is %s old", w.now.Sub(newest.StartedAt))
	}
}

// backedUpSince reports whether a stored backup started at or after the given time.
func (w *World) backedUpSince(then time.Time) bool {
	for _, j := range w.backups.jobs {
		if j.Phase == decide.JobSucceeded && !j.CreatedAt.Before(then) {
			return true
		}
	}
	last := w.status.backup
	return last != nil && !last.StartedAt.Before(then)
}
