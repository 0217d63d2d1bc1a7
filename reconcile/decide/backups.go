package decide

import (
	"cmp"
	"slices"
)

// all returns the known backups, newest first.
func (b Backups) all() []Backup {
	var all []Backup
	for _, j := range b.Jobs {
		if j.Backup != nil {
			all = append(all, *j.Backup)
		}
	}
	if b.Last != nil {
		all = append(all, *b.Last)
	}
	slices.SortFunc(all, func(a, b Backup) int {
		return cmp.Or(b.StartedAt.Compare(a.StartedAt), byVerified(a, b), cmp.Compare(a.Job, b.Job))
	})
	return all
}

// byVerified orders verified backups first.
func byVerified(a, b Backup) int {
	switch {
	case a.Verified == b.Verified:
		return 0
	case a.Verified:
		return -1
	}
	return 1
}

// jobs returns the Jobs, newest first.
func (b Backups) jobs() []BackupJob {
	return slices.SortedFunc(slices.Values(b.Jobs), func(a, b BackupJob) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
}

// NewestFailure returns the Job that failed most recently, or nil if a backup began after that Job.
func (b Backups) NewestFailure() *BackupJob {
	var newest *BackupJob
	jobs := b.jobs()
	for i := range jobs {
		j := &jobs[i]
		since := b.Last == nil || !b.Last.StartedAt.After(j.CreatedAt)
		if j.Phase == JobFailed && since && (newest == nil || j.CreatedAt.After(newest.CreatedAt)) {
			newest = j
		}
	}
	return newest
}

// Delayed returns the newest active Job whose pod reports why it is waiting or has failed, or nil. The Job may still
// succeed.
func (b Backups) Delayed() *BackupJob {
	var newest *BackupJob
	for i, j := range b.Jobs {
		if j.Phase == JobRuns && j.Message != "" && (newest == nil || j.CreatedAt.After(newest.CreatedAt)) {
			newest = &b.Jobs[i]
		}
	}
	return newest
}

func (b Backups) anyRuns() bool {
	return slices.ContainsFunc(b.Jobs, func(j BackupJob) bool { return j.Phase == JobRuns })
}

// Runs reports whether the named Job is running.
func (b Backups) Runs(job string) bool {
	return slices.ContainsFunc(b.Jobs, func(j BackupJob) bool { return j.Name == job && j.Phase == JobRuns })
}

// NewerBackup returns the backup that began later. If both began at the same time, for example in two pods of a Job, it
// returns the verified backup, or else b, which was observed later. Either may be nil.
func NewerBackup(a, b *Backup) *Backup {
	switch {
	case a == nil || b == nil:
		return cmp.Or(a, b)
	case b.StartedAt.After(a.StartedAt), b.StartedAt.Equal(a.StartedAt) && (b.Verified || !a.Verified):
		return b
	}
	return a
}

// BackupStale reports whether a backup is overdue. known is false if git does not currently request backups, or if the
// answer cannot be determined.
func (s State) BackupStale() (is, known bool) {
	return s.Backups.Overdue, s.Declared.BacksUp && s.backupsJudged()
}

// BackupUnverified reports whether the newest backup has not been read back although git requires verification. known
// is false if git does not require verification, or while the backup is about to be read back.
func (s State) BackupUnverified() (is, known bool) {
	last := s.Backups.Last
	if !s.Declared.VerifiesBackups || !s.backupsJudged() || last == nil || last.ClusterID != s.Record.ClusterID {
		return false, false
	}
	if !last.Verified && s.Backups.Runs(last.Job) {
		return false, false
	}
	return !last.Verified, true
}

// backupsJudged reports whether the cluster should run and has an ID, so that it can be backed up, and its backups are
// known.
func (s State) backupsJudged() bool {
	return s.toRun() && s.Record.ClusterID != 0 && s.Backups.Hidden == ""
}
