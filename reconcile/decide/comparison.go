package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Comparison is the most recent comparison of the voters' data, as recorded in the status.
type Comparison struct {
	// At is when the data was last compared, or could not be compared because of Failure.
	At time.Time `json:"at,omitzero"`
	// Revision is the revision at which the data was compared, or zero after a failure.
	Revision int64  `json:"revision,omitempty"`
	Failure  string `json:"failure,omitempty"`
	// DiffersSince is when a pass first found that voters hold different data. It is zero once all voters are known to
	// hold the same data again.
	DiffersSince time.Time `json:"differsSince,omitzero"`
}

// ComparisonDue reports whether the data of all voters must be compared, because the last comparison was too long ago.
// A failed comparison is repeated sooner.
func (s State) ComparisonDue() bool {
	interval, last := s.Declared.CorruptionCheck, s.Comparison
	if last.Failure != "" {
		interval = min(interval, failedComparisonPause)
	}
	age := s.Now.Sub(last.At)
	return interval > 0 && s.toRun() && (last.At.IsZero() || age >= interval || age < 0)
}

// ComparisonToReport returns the comparison for the status.
func (s State) ComparisonToReport() Comparison {
	report := s.Comparison
	switch {
	case !s.Membership.Known:
		return report
	case s.Membership.allAgree():
		report.DiffersSince = time.Time{}
	case s.Membership.anyDiffer():
		report.DiffersSince = cmp.Or(report.DiffersSince, s.Now)
	}
	if !s.ComparisonDue() || !s.Membership.Compared() {
		return report
	}
	report.At, report.Revision, report.Failure = s.Now, 0, ""
	first := s.Membership.Voters()[0].Hash
	switch {
	case slices.ContainsFunc(s.Membership.Voters(), func(v Member) bool { return !v.Hash.Known() }):
		report.Failure = s.describeHashes()
	case !s.Membership.samePoint() || first.CompactRevision == first.Revision:
		report.Failure = notComparable
	default:
		report.Revision = first.Revision
	}
	return report
}

// notComparable is the only reason for a failed comparison that does not cause a warning. After a compaction and until
// the next write, members return the hash that they computed before the compaction (etcd's storage/mvcc/hash.go).
const notComparable = "the members' hashes are comparable only after the next write"

// Compared reports whether voters were asked for their hashes.
func (m Membership) Compared() bool {
	return slices.ContainsFunc(m.Voters(), func(v Member) bool { return v.Hash.Known() || v.HashWhy != "" })
}

// samePoint reports whether the hashes of all voters are known and comparable.
func (m Membership) samePoint() bool {
	voters := m.Voters()
	return len(voters) > 0 && all(voters,
		func(v Member) bool { return v.Hash.Known() && v.Hash.point() == voters[0].Hash.point() })
}

// allAgree reports whether all voters respond and are known to hold the same data.
func (m Membership) allAgree() bool {
	voters := m.Voters()
	return len(voters) > 0 && m.votes(voters[0].Hash) == len(voters)
}

// anyDiffer reports whether two voters are known to hold different data.
func (m Membership) anyDiffer() bool {
	voters := m.Voters()
	return slices.ContainsFunc(voters, func(v Member) bool {
		return slices.ContainsFunc(voters, func(other Member) bool { return v.Hash.differs(other.Hash) })
	})
}

// HasCorruptAlarm reports whether etcd has raised a CORRUPT alarm.
func (m Membership) HasCorruptAlarm() bool {
	raised := func(member Member) bool { return slices.Contains(member.Alarms, AlarmCorrupt) }
	return slices.ContainsFunc(m.StaleAlarms, func(a Alarm) bool { return a.Kind == AlarmCorrupt }) ||
		slices.ContainsFunc(m.Members, raised)
}

// backUpFirst delays the removal of a responding voter with different data until there is a backup that began after the
// difference was found, if backups are declared, because the majority's data may be wrong. The removal is not delayed
// during a CORRUPT alarm, because etcd then rejects writes, and a backup would not count.
func (s State) backUpFirst(m Member, why string) (Decision, bool) {
	since := s.Comparison.DiffersSince
	if !s.Declared.BacksUp || s.Membership.HasCorruptAlarm() || !m.Answers || m.Leader || m.Learner ||
		s.corruptMinority(m) == "" ||
		!since.IsZero() && s.hasBackupSince(since) {
		return Decision{}, false
	}
	why = fmt.Sprintf("%s %s, and is replaced only after a backup", s.nameOf(m), why)
	job, started := s.backupOfDifference()
	switch {
	case since.IsZero():
		return wait(recheckSettling, "%s: waiting until the status records the difference", why)
	case s.Backups.Foreign != "":
		return block("%s. The required backup cannot be taken: %s", why, s.Backups.Foreign)
	case s.Backups.Hidden != "":
		return wait(recheckDoubt, "%s. Cannot tell which backups exist: %s", why, s.Backups.Hidden)
	case started && job.Phase == JobRuns:
		return wait(recheckDoubt, "%s: waiting for %s", why, strings.TrimSuffix(fmt.Sprintf("Job %s (%s)", job.Name,
			job.Message), " ()"))
	case started:
		return block("%s. Job %s did not store a valid backup: %s. Fix the cause, then run kubectl create job "+
			"--from=cronjob/%s-backup NAME; or set spec.backup.suspend to replace the member without a backup",
			why, job.Name, describeEnd(job), s.Name)
	case s.Backups.anyRuns():
		return wait(recheckDoubt, "%s: that backup starts once no other backup is running", why)
	case !s.canBackUp():
		return wait(recheckDoubt, "%s: that backup starts once the custom resource matches git", why)
	}
	return act(StartBackup{DiffersSince: since}, "%s: starting that backup", why)
}

func describeEnd(job BackupJob) string {
	if job.Message != "" {
		return job.Message
	}
	if job.Phase == JobSucceeded {
		return "no verified backup of this cluster was reported"
	}
	return "no reason reported"
}

// awaitsBackup reports whether the replacement of a member waits for a backup.
func (s State) awaitsBackup() bool {
	return slices.ContainsFunc(s.Membership.Members, func(m Member) bool {
		_, waits := s.backUpFirst(m, "")
		return waits
	})
}

// backupOfDifference returns the Job that a pass started because voters hold different data.
func (s State) backupOfDifference() (BackupJob, bool) {
	since := s.Comparison.DiffersSince
	for _, job := range s.Backups.jobs() {
		if !since.IsZero() && job.DiffersSince.Equal(since) {
			return job, true
		}
	}
	return BackupJob{}, false
}

// comparisonWarnings returns a warning if the voters' data could not be compared, or not for a long time.
func (s State) comparisonWarnings() []string {
	last, interval := s.Comparison, s.Declared.CorruptionCheck
	at := last.At.UTC().Format(time.RFC3339)
	switch {
	case interval == 0 || last.At.IsZero():
	case last.Failure != "" && last.Failure != notComparable:
		return []string{fmt.Sprintf("the members' data could not be compared at %s: %s", at, last.Failure)}
	case s.Now.Sub(last.At) > 2*interval+noComparison && len(s.Membership.Voters()) > 1 && len(s.Record.Guests) == 0:
		return []string{fmt.Sprintf("the members' data has not been compared since %s, because not all members have "+
			"been healthy voters of the same version", at)}
	}
	return nil
}
