package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Backups is the observed state of backups: the Jobs that take them, whether started by a Kubernetes schedule, by a
// pass or manually.
type Backups struct {
	// Jobs are the existing Jobs, in any order.
	Jobs []BackupJob `json:"jobs,omitempty"`
	// Last is the newest successful backup, according to these Jobs or the status, or nil if unknown.
	Last *Backup `json:"last,omitempty"`
	// BeforeDeletion is the backup in the status that a deletion declared in the backup's generation relies on, or nil.
	BeforeDeletion *Backup `json:"beforeDeletion,omitempty"`
	// Since is the time at which the schedule was created in Kubernetes, or zero if backups are not scheduled.
	Since time.Time `json:"since,omitzero"`
	// Due is when the newest scheduled backup that should have succeeded by now was due or, if no backup of this
	// cluster is known, when the first backup was due. It is zero if unknown. Overdue is true if no backup has
	// succeeded since.
	Due     time.Time `json:"due,omitzero"`
	Overdue bool      `json:"overdue,omitempty"`
	// Drift lists how the CronJob differs from the declaration, as Objects.Drift does for the other objects. It is
	// separate because repairs must not wait for it.
	Drift []string `json:"drift,omitempty"`
	// Foreign describes an unmanaged CronJob that has the name of the backup CronJob, or is empty.
	Foreign string `json:"foreign,omitempty"`
	// To is the location where the existing CronJob stores backups. Suspended is true if the CronJob is suspended.
	To        string `json:"to,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Hidden is the reason why the existing Jobs are unknown, or empty if they are known.
	Hidden string `json:"hidden,omitempty"`
	// Drill is the newest backup that was restored successfully in a drill, or nil if unknown. DrillFailed is the
	// newest drill that has failed since.
	Drill       *Drill        `json:"drill,omitempty"`
	DrillFailed *DrillFailure `json:"drillFailed,omitempty"`
	// DrillDue is when the second-to-last drill that should have ended by now was due, or zero if unknown or not
	// applicable.
	DrillDue time.Time `json:"drillDue,omitzero"`
	// Drills is true if a drill CronJob exists and is not suspended.
	Drills bool `json:"drills,omitempty"`
	// DrillForeign describes an unmanaged CronJob that has the name of the drill CronJob, or is empty.
	DrillForeign string `json:"drillForeign,omitempty"`
}

// SlotLayout is the format of the time in a backup's name. It is valid in Kubernetes names and sorts by time.
const SlotLayout = "20060102t150405z"

// JobPhase is the phase of a backup Job.
type JobPhase string

// The phases of a backup Job. A failing Job is Running until Kubernetes stops retrying it.
const (
	JobRuns      JobPhase = "Running"
	JobSucceeded JobPhase = "Succeeded"
	JobFailed    JobPhase = "Failed"
)

// BackupJob is a Job that takes a backup.
type BackupJob struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
	// Generation is the custom resource's generation for which a pass started the Job, or zero if a pass did not start
	// it.
	Generation int64 `json:"generation,omitempty"`
	// DiffersSince identifies the difference between the voters' data (Comparison.DiffersSince) for which a pass
	// started the Job. It is zero for other Jobs.
	DiffersSince time.Time `json:"differsSince,omitzero"`
	Phase        JobPhase  `json:"phase"`
	// CreatedAt is when the Job was started, and EndedAt when it succeeded or failed.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Message is why the Job failed or is waiting, if known.
	Message string `json:"message,omitempty"`
	// Damaged is true if the stored backup was read back and differs from the stored data.
	Damaged bool `json:"damaged,omitempty"`
	// Backup is the backup that the Job has stored, even if the Job failed afterwards. It is nil if the Job stored
	// nothing or its report is gone.
	Backup *Backup `json:"backup,omitempty"`
}

// Backup is a stored backup.
type Backup struct {
	Job string `json:"job"`
	// Generation is the custom resource's generation for which a pass started the Job, or zero if a pass did not start
	// it.
	Generation int64 `json:"generation,omitempty"`
	// Slot is the time for which the backup was scheduled.
	Slot       time.Time `json:"slot"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	To         string    `json:"to,omitempty"`
	ClusterID  ID        `json:"clusterID,omitempty"`
	Revision   int64     `json:"revision,omitempty"`
	Bytes      int64     `json:"bytes,omitempty"`
	// Verified is true if the backup was read back and matches the stored data.
	Verified bool `json:"verified,omitempty"`
}

// slotAhead is how far in the future the scheduled minute in the name of a CronJob's Job may be.
const slotAhead = 10 * time.Minute

// CanHaveBeen reports whether the backup can already have begun. If its times are in the future, the age of its data is
// unknown, and until then the backup would count as newer than all others.
func (b Backup) CanHaveBeen(now time.Time) bool {
	return !YetToCome(b.StartedAt, now) && !b.Slot.After(now.Add(clockSkew+slotAhead))
}

// startedBackup returns the Job that a pass started for this generation of the custom resource.
func (s State) startedBackup() (BackupJob, bool) {
	for _, job := range s.Backups.jobs() {
		if s.Generation != 0 && job.Generation == s.Generation {
			return job, true
		}
	}
	return BackupJob{}, false
}

// earlierBackupRuns returns the name of a running Job that a pass started for an earlier generation, or "". Only one
// such Job takes a backup at a time, however often git changes.
func (s State) earlierBackupRuns() string {
	for _, job := range s.Backups.jobs() {
		if job.Generation != 0 && job.Generation != s.Generation && job.Phase == JobRuns {
			return job.Name
		}
	}
	return ""
}

// hasBackupSince reports whether a known backup of this cluster began at or after the given time and, if git requires
// it, has been verified.
func (s State) hasBackupSince(since time.Time) bool {
	return slices.ContainsFunc(s.Backups.all(), func(b Backup) bool {
		return s.isOurs(b) && !b.StartedAt.Before(since)
	})
}

// isOurs reports whether a backup was taken of this cluster, is not from the future and, if git requires it, has been
// verified.
func (s State) isOurs(b Backup) bool {
	return b.ClusterID == s.Record.ClusterID && b.CanHaveBeen(s.Now) && (b.Verified || !s.Declared.VerifiesBackups)
}

// mayStartBackup reports whether etcd can be backed up and no backup has been started for this generation yet.
func (s State) mayStartBackup() bool {
	_, started := s.startedBackup()
	return s.canBackUp() && !started
}

// canBackUp reports whether etcd can be backed up, the result would be known, and the custom resource matches git, so
// that its generation identifies the declaration.
func (s State) canBackUp() bool {
	return s.Membership.Known && s.Record.ClusterID != 0 && s.Generation != 0 && !s.Objects.DeclarationDiffers &&
		s.Backups.Hidden == "" && s.Backups.Foreign == "" && s.earlierBackupRuns() == ""
}

// backUp applies the schedule, and starts the backups that should not wait for the schedule: the first backup, because
// all data can be lost until a backup exists, and the backup before an upgrade. If the first backup fails, the schedule
// starts the next one. This rule comes after all repairs, so that a rejected backup does not delay them.
func backUp(s State) (Decision, bool) {
	nothingElse := s.hasStatefulSet() && len(s.Objects.Drift)+len(s.recordDifferences()) == 0
	if len(s.Backups.Drift) > 0 && s.Formed() && s.recorded() && s.toRun() && nothingElse {
		return act(ApplyObjects{}, "%s", sentence(s.Backups.Drift))
	}
	return s.startDueBackup()
}

// besideBackup wraps a rule so that due backup work is done before the rule blocks for manual action, which may take
// days.
func besideBackup(apply func(State) (Decision, bool)) func(State) (Decision, bool) {
	return func(s State) (Decision, bool) {
		d, spoke := apply(s)
		if !spoke || d.Verdict != Block {
			return d, spoke
		}
		if due, acts := backUp(s); acts {
			due.Message += ". Manual action is also required: " + d.Message
			return due, true
		}
		return d, true
	}
}

func (s State) startDueBackup() (Decision, bool) {
	switch {
	case !s.toRun() || !s.mayStartBackup():
		return Decision{}, false
	case s.lacksBackup():
		return act(StartBackup{Generation: s.Generation}, "taking a backup before etcd %s is rolled out",
			s.Declared.Version)
	case s.Declared.BacksUp && !s.hasBackupSince(time.Time{}) && !s.Backups.anyRuns():
		return act(StartBackup{Generation: s.Generation}, "taking the first backup: this cluster has no known backups")
	}
	return Decision{}, false
}

// needsBackup reports whether pods are about to move to an etcd version that no pod was created with yet, so that the
// move must wait for a backup. If a pod was created with that version, the upgrade has begun or is being reverted. If
// quorum is impossible, a backup cannot be taken, and actions that may restore quorum do not wait for one.
func (s State) needsBackup() bool {
	refusal, _ := s.judgeVersion()
	refused := refusal != "" && !s.stepBegun() // a rollout that has begun may still recreate broken pods
	if !s.Declared.BacksUpBeforeUpgrade || refused || s.quorumIsGone() || s.founding() {
		return false
	}
	moves := s.WantsOtherPods() && s.Objects.RunsVersion != s.Declared.Version
	for _, r := range s.Replicas {
		if r.Pod == PodAbsent || r.PodVersion == "" {
			continue
		}
		if r.PodVersion == s.Declared.Version {
			return false
		}
		moves = true
	}
	return moves
}

// quorumIsGone reports whether too few pods are ready for a quorum of the recorded members, and a pod is failing, which
// a different version may fix. A different version does not help pods that are waiting for a node, and a member that
// fails to respond only briefly does not count as failing.
func (s State) quorumIsGone() bool {
	ready, fails := 0, false
	for _, m := range s.Record.Members {
		pod := s.Replica(m.Ordinal).Pod
		if pod == PodReady {
			ready++
		}
		fails = fails || pod == PodFailing
	}
	return !s.Membership.MayServe() && fails && ready < len(s.Record.Members)/2+1
}

// lacksBackup reports whether an upgrade must wait for its backup. Any backup counts if it began after a pass started
// the backup for the current declaration: if that backup failed, a later scheduled or manual backup is enough.
func (s State) lacksBackup() bool {
	job, started := s.startedBackup()
	has := started && !s.Objects.DeclarationDiffers && s.hasBackupSince(job.CreatedAt)
	return s.needsBackup() && !has
}

// upgradeAfterBackup makes an upgrade that should fix a failing member wait for its backup, or starts that backup.
// Until the backup exists, no other action is taken for the member. The upgrade does not wait for a backup that has
// failed.
func (s State) upgradeAfterBackup() (Decision, bool) {
	lack, ends := s.describeLackingBackup()
	if !ends {
		return Decision{}, false
	}
	if d, starts := s.startDueBackup(); starts {
		return d, true
	}
	return wait(recheck, "%s; %s", s.describeMembers(), lack)
}

// statefulSetAfterBackup delays recreating the StatefulSet, whose pods would run the version that must wait for a
// backup.
func (s State) statefulSetAfterBackup() (Decision, bool) {
	if s.Objects.DeclarationDiffers { // the backup belongs to this declaration
		return act(Declare{}, "updating the custom resource: etcd %s is declared", s.Declared.Version)
	}
	if d, starts := s.startDueBackup(); starts {
		return d, true
	}
	progress, ends := s.awaitedBackup(beforeUpgrade)
	message := fmt.Sprintf("the StatefulSet is missing and cannot be recreated with etcd %s yet: %s. "+
		"To recreate it now, declare the running version", s.Declared.Version, progress)
	if ends {
		return wait(recheck, "%s", message)
	}
	return block("%s", message)
}

// waitForBackup makes an upgrade wait for its backup. Repairs do not wait for it.
func waitForBackup(s State) (Decision, bool) {
	lack, ends := s.describeLackingBackup()
	switch {
	case lack == "":
		return Decision{}, false
	case ends:
		return wait(recheck, "%s", lack)
	}
	return block("%s", lack)
}

// describeLackingBackup returns why an upgrade is waiting for a backup, or "", and whether the wait ends by itself.
func (s State) describeLackingBackup() (lack string, ends bool) {
	if !s.lacksBackup() {
		return "", false
	}
	return s.describeAwaitedBackup(beforeUpgrade)
}

// isElsewhere reports whether a backup is stored in a location other than the declared location.
func (s State) isElsewhere(b *Backup) bool { return b != nil && b.To != s.Declared.BackupTo }

// The occasions in spec.backup.before.
const (
	beforeUpgrade  = "Upgrade"
	beforeDeletion = "Deletion"
)

// describeAwaitedBackup describes the operation that is waiting for the backup required by occasion, and the progress
// of that backup. It also reports whether the wait ends by itself.
func (s State) describeAwaitedBackup(occasion string) (lack string, ends bool) {
	progress, ends := s.awaitedBackup(occasion)
	if occasion == beforeDeletion {
		return "cannot delete the cluster yet: " + progress, ends
	}
	return fmt.Sprintf("cannot roll out etcd %s yet: %s", s.Declared.Version, progress), ends
}

// awaitedBackup returns the progress of the backup required by occasion, and whether the wait ends by itself.
func (s State) awaitedBackup(occasion string) (progress string, ends bool) {
	job, started := s.startedBackup()
	again := fmt.Sprintf("run kubectl create job --from=cronjob/%s-backup NAME", s.Name)
	if occasion == beforeDeletion && s.Backups.To != s.Declared.BackupTo { // the CronJob would store it elsewhere
		again = fmt.Sprintf("run kubectl delete job %s so that a new one is started", job.Name)
	}
	switch {
	case s.Backups.Foreign != "":
		return "the required backup cannot be taken: " + s.Backups.Foreign, false
	case s.Backups.Hidden != "":
		return "cannot tell whether the required backup exists: " + s.Backups.Hidden, true
	case !started && s.earlierBackupRuns() != "":
		return fmt.Sprintf("the required backup will start once Job %s, started for an earlier spec, has ended",
			s.earlierBackupRuns()), true
	case !started:
		return "the required backup cannot be started yet", true
	case s.yetToCome(job):
		return fmt.Sprintf("Job %s was created at %s, which is in the future. Check the clocks, then run "+
			"kubectl delete job %s so that a new one is started", job.Name, job.CreatedAt.UTC().Format(time.RFC3339),
			job.Name), false
	case job.Phase == JobFailed:
		return fmt.Sprintf("the required backup failed (Job %s: %s). Fix the cause, then %s; or remove %s from "+
			"spec.backup.before", job.Name, cmp.Or(job.Message, "no reason reported"), again, occasion), false
	case job.Phase == JobSucceeded && occasion == beforeDeletion && s.isElsewhere(job.Backup):
		return fmt.Sprintf("the backup must be in %s, but Job %s stored it in %s. To take another backup, %s",
			s.Declared.BackupTo, job.Name, cmp.Or(job.Backup.To, "an unreported location"), again), false
	case job.Phase == JobSucceeded:
		return fmt.Sprintf("Job %s ended without reporting a backup of this cluster. Check its log, then %s", job.Name,
			again), false
	case job.Message != "":
		return fmt.Sprintf("waiting for the required backup (Job %s is running: %s)", job.Name, job.Message), true
	}
	return fmt.Sprintf("waiting for the required backup (Job %s is running)", job.Name), true
}
