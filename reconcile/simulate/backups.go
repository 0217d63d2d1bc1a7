package simulate

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backups are the Jobs that back up, and what has come of them.
type backups struct {
	jobs []backupJob
	// refused: the store takes nothing.
	refused bool
	// generation of the custom resource, and since when it has declared its version of etcd.
	generation int64
	declaredAt time.Time
}

// backupJob is a Job and the UID of the custom resource that owns it.
type backupJob struct {
	decide.BackupJob
	owner string
	wait  int // ticks
}

// attemptsOfJob is for how many ticks Kubernetes tries before it gives a Job up.
const attemptsOfJob = 6

// RefuseBackups has the store take nothing, or take everything again.
func (w *World) RefuseBackups(refused bool) { w.backups.refused = refused }

// ForgetBackups takes away all Jobs, as Kubernetes does with those that have ended long ago.
func (w *World) ForgetBackups() { w.backups.jobs = nil }

// ScheduleBackup has Kubernetes start a Job by the schedule, as it does without any pass.
func (w *World) ScheduleBackup() {
	if w.Declared.BacksUp && w.exists(w.customResource()) {
		w.startJob(decide.BackupJob{Name: w.name + "-backup-" + w.next("j")})
	}
}

func (w *World) startBackup(a decide.StartBackup) []write {
	name := fmt.Sprintf("%s-backup-gen%d", w.name, a.Generation)
	started := func(j backupJob) bool { return j.Name == name }
	if a.Generation != w.backups.generation || slices.ContainsFunc(w.backups.jobs, started) {
		return nil
	}
	return []write{{"Job " + name, func() { w.startJob(decide.BackupJob{Name: name, Generation: a.Generation}) }}}
}

func (w *World) startJob(j decide.BackupJob) {
	j.Phase, j.CreatedAt = decide.JobRuns, w.now
	w.backups.jobs = append(w.backups.jobs, backupJob{j, w.objects[w.customResource()].uid, 1 + w.delay(2)})
}

// declare notes that the custom resource is written: Kubernetes counts what it has declared.
func (w *World) declare(isNew bool) {
	if isNew {
		w.backups.generation = 0
	}
	if isNew || w.applied.Version != w.Declared.Version {
		w.backups.declaredAt = w.now
	}
	if isNew || !sameDeclaration(w.applied, w.Declared) {
		w.backups.generation++
	}
	w.applied = w.Declared
}

// runBackups lets Jobs go on: one ends well once a quorum answers and the store takes it.
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
			j.Backup = &decide.Backup{Job: j.Name, Slot: j.CreatedAt, StartedAt: j.CreatedAt, FinishedAt: w.now,
				ClusterID: id}
		case w.now.Sub(j.CreatedAt) >= attemptsOfJob*TickLength:
			j.Phase, j.EndedAt, j.Message = decide.JobFailed, w.now, "the store refuses"
		}
	}
}

// seenBackups is what a pass sees of them.
func (w *World) seenBackups() decide.Backups {
	var seen decide.Backups
	if w.exists(w.customResource()) {
		seen.Last = w.status.backup
	}
	for _, j := range w.backups.jobs {
		seen.Jobs = append(seen.Jobs, j.BackupJob)
		seen.Last = decide.NewerBackup(seen.Last, j.Backup)
	}
	return seen
}

// collectJobs deletes those whose owner is gone.
func (w *World) collectJobs(owner string) {
	w.backups.jobs = slices.DeleteFunc(slices.Clone(w.backups.jobs), func(j backupJob) bool { return j.owner != owner })
}

// judgeUpgrade: no upgrade begins without a backup that was begun since it was declared, where git
// wants one and it could be taken.
func (w *World) judgeUpgrade(version string) {
	r, _ := w.reachable()
	if !w.Declared.BacksUpBeforeUpgrade || version == w.set.version || r == nil {
		return
	}
	for _, p := range w.pods {
		if p.version == version {
			return // it is taken back
		}
	}
	for _, j := range w.backups.jobs {
		if j.Phase == decide.JobSucceeded && !j.CreatedAt.Before(w.backups.declaredAt) {
			return
		}
	}
	if last := w.status.backup; last == nil || last.StartedAt.Before(w.backups.declaredAt) {
		w.violate("etcd %s is rolled out without a backup", version)
	}
}
