package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Backups is what is seen of backups: the Jobs that take them, by a schedule of Kubernetes' own or
// since a pass or a person has started them.
type Backups struct {
	// Jobs that are there, in any order.
	Jobs []BackupJob `json:"jobs,omitempty"`
	// Last is the newest backup that succeeded, by these Jobs or by the status; nil if none is known.
	Last *Backup `json:"last,omitempty"`
	// BeforeDeletion is the backup that the deletion of the generation that it names goes by, by the status; nil if
	// it says none.
	BeforeDeletion *Backup `json:"beforeDeletion,omitempty"`
	// Since is when Kubernetes was given the schedule; zero if it has none.
	Since time.Time `json:"since,omitzero"`
	// Due is when the newest backup was due that should have succeeded by now, or the first one; zero if that is
	// not known. Overdue: none has succeeded since.
	Due     time.Time `json:"due,omitzero"`
	Overdue bool      `json:"overdue,omitempty"`
	// Drift says how the CronJob is not as it should be, as Objects.Drift does of the others. It is kept
	// apart, since nothing that heals may wait for it.
	Drift []string `json:"drift,omitempty"`
	// Foreign says that somebody else has a CronJob of its name; empty if nobody has.
	Foreign string `json:"foreign,omitempty"`
	// To is where the CronJob that is there backs up to, and Suspended whether it does.
	To        string `json:"to,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Hidden says why it is not known which Jobs there are; empty if it is.
	Hidden string `json:"hidden,omitempty"`
	// Drill is the newest backup that was restored for practice, and was well; nil if none is known.
	// DrillFailed is the newest drill that failed since.
	Drill       *Drill        `json:"drill,omitempty"`
	DrillFailed *DrillFailure `json:"drillFailed,omitempty"`
	// DrillDue is when the last but one drill was due whose time is over; zero if none was, or none is known.
	DrillDue time.Time `json:"drillDue,omitzero"`
	// Reread is what came of reading stored backups again, the last time; nil if git wants none to be, or that is not
	// known.
	Reread *Reread `json:"reread,omitempty"`
	// Drills: there is a CronJob that drills, and it is not suspended.
	Drills bool `json:"drills,omitempty"`
	// DrillForeign says that somebody else has a CronJob of the name of that which drills; empty if nobody has.
	DrillForeign string `json:"drillForeign,omitempty"`
}

// JobPhase is how far a Job that backs up has come.
type JobPhase string

// The phases. A Job runs until Kubernetes has given it up.
const (
	JobRuns      JobPhase = "Running"
	JobSucceeded JobPhase = "Succeeded"
	JobFailed    JobPhase = "Failed"
)

// BackupJob is a Job that takes a backup.
type BackupJob struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
	// Generation of the custom resource that a pass has started it for; zero if none has.
	Generation int64    `json:"generation,omitempty"`
	Phase      JobPhase `json:"phase"`
	// CreatedAt is when it was started, and EndedAt when it succeeded or failed.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// Message says why it failed, or what it waits for, if that is known.
	Message string `json:"message,omitempty"`
	// Damaged: what it has stored was read back, and is not what was stored.
	Damaged bool `json:"damaged,omitempty"`
	// Backup that it has stored, although it may have failed after that; nil if it has not, or if its
	// word is gone.
	Backup *Backup `json:"backup,omitempty"`
}

// Backup is one that was stored.
type Backup struct {
	Job string `json:"job"`
	// Generation of the custom resource that a pass has started that Job for; zero if none has.
	Generation int64 `json:"generation,omitempty"`
	// Slot is the moment that it is for.
	Slot       time.Time `json:"slot"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt"`
	To         string    `json:"to,omitempty"`
	ClusterID  ID        `json:"clusterID,omitempty"`
	Revision   int64     `json:"revision,omitempty"`
	Bytes      int64     `json:"bytes,omitempty"`
	// Verified: it was read back after that, and is what was stored.
	Verified bool `json:"verified,omitempty"`
}

// slotAhead is how far the minute may be ahead that a CronJob has named its Job after.
const slotAhead = 10 * time.Minute

// CanHaveBeen reports whether the backup can have been begun by now. Of one of the future nobody knows when its data
// are of: until then it would be the newest one, and count as taken since anything else.
func (b Backup) CanHaveBeen(now time.Time) bool {
	return !YetToCome(b.StartedAt, now) && !b.Slot.After(now.Add(clockSkew+slotAhead))
}

// startedBackup is the Job that a pass has started for this generation of the custom resource.
func (s State) startedBackup() (BackupJob, bool) {
	for _, job := range s.Backups.jobs() {
		if s.Generation != 0 && job.Generation == s.Generation {
			return job, true
		}
	}
	return BackupJob{}, false
}

// earlierBackupRuns is the Job that a pass has started for an earlier generation and that still runs; empty
// if there is none. However often git changes, one Job takes a backup at a time.
func (s State) earlierBackupRuns() string {
	for _, job := range s.Backups.jobs() {
		if job.Generation != 0 && job.Generation != s.Generation && job.Phase == JobRuns {
			return job.Name
		}
	}
	return ""
}

// hasBackupSince reports whether a backup of this cluster is known that was begun since then, and that
// was verified where git wants that.
func (s State) hasBackupSince(since time.Time) bool {
	return slices.ContainsFunc(s.Backups.all(), func(b Backup) bool {
		return s.isOurs(b) && !b.StartedAt.Before(since)
	})
}

// isOurs reports whether a backup is of this cluster and of a time that has come, and was verified where git wants
// that.
func (s State) isOurs(b Backup) bool {
	return b.ClusterID == s.Record.ClusterID && b.CanHaveBeen(s.Now) && (b.Verified || !s.Declared.VerifiesBackups)
}

// mayStartBackup reports whether etcd can be backed up, and no pass has started that for this generation.
func (s State) mayStartBackup() bool {
	_, started := s.startedBackup()
	return s.canBackUp() && !started
}

// canBackUp reports whether etcd can be backed up, it would be known, and the custom resource says what git does:
// its generation stands for that.
func (s State) canBackUp() bool {
	return s.Membership.Known && s.Record.ClusterID != 0 && s.Generation != 0 && !s.Objects.DeclarationDiffers &&
		s.Backups.Hidden == "" && s.Backups.Foreign == "" && s.earlierBackupRuns() == ""
}

// backUp has Kubernetes told of the schedule, and starts a backup that is not to wait for it: the first
// one, since everything can be lost until there is one, and the one before an upgrade. The schedule
// makes up for a first one that fails. It comes after all that heals, which no backup that is refused
// may hold up.
func backUp(s State) (Decision, bool) {
	nothingElse := s.hasStatefulSet() && len(s.Objects.Drift)+len(s.recordDifferences()) == 0
	if len(s.Backups.Drift) > 0 && s.Formed() && s.recorded() && s.toRun() && nothingElse {
		return act(ApplyObjects{}, "%s", sentence(s.Backups.Drift))
	}
	return s.startDueBackup()
}

// besideBackup is a rule that does what is due of backups before it leaves everything to a person: that
// may take days, and is no reason to be without one.
func besideBackup(apply func(State) (Decision, bool)) func(State) (Decision, bool) {
	return func(s State) (Decision, bool) {
		d, spoke := apply(s)
		if !spoke || d.Verdict != Block {
			return d, spoke
		}
		if due, acts := backUp(s); acts {
			due.Message += "; and for a person: " + d.Message
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
		return act(StartBackup{s.Generation}, "before etcd %s is rolled out: take a backup", s.Declared.Version)
	case s.Declared.BacksUp && !s.hasBackupSince(time.Time{}) && !s.Backups.anyRuns():
		return act(StartBackup{s.Generation}, "no backup of this cluster is known: take the first one")
	}
	return Decision{}, false
}

// needsBackup reports whether pods are about to be moved to a version of etcd that none of them was
// made for, which is to wait for a backup. Where one of them was, that has begun, or is taken back;
// and where there can be no quorum, none can be taken, and what may bring it back does not wait for one.
func (s State) needsBackup() bool {
	refusal, _ := s.judgeVersion()
	if !s.Declared.BacksUpBeforeUpgrade || refusal != "" || s.quorumIsGone() || s.founding() {
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

// quorumIsGone reports whether fewer pods are ready than quorum of the members on record needs, and one of
// them fails, which another version may cure. It cures none that waits for a node, and that nobody was
// heard for a moment is not enough.
func (s State) quorumIsGone() bool {
	ready, fails := 0, false
	for _, m := range s.Record.Members {
		pod := s.Replica(m.Ordinal).Pod
		if pod == PodReady {
			ready++
		}
		fails = fails || pod == PodFailing
	}
	return !s.Membership.Known && fails && ready < len(s.Record.Members)/2+1
}

// lacksBackup reports whether an upgrade has to wait for its backup. Any counts that was begun since
// a pass has started one for what git declares: who cures what made that one fail need not wait for another pass.
func (s State) lacksBackup() bool {
	job, started := s.startedBackup()
	has := started && !s.Objects.DeclarationDiffers && s.hasBackupSince(job.CreatedAt)
	return s.needsBackup() && !has
}

// upgradeAfterBackup has an upgrade that is to cure a member that fails wait for its backup, or starts
// that: nothing else is done for the member meanwhile. It does not wait for one that has failed.
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

// statefulSetAfterBackup: new pods would be of the version that waits for its backup.
func (s State) statefulSetAfterBackup() (Decision, bool) {
	if s.Objects.DeclarationDiffers { // the backup is that of this declaration
		return act(Declare{}, "write down that etcd %s is declared", s.Declared.Version)
	}
	if d, starts := s.startDueBackup(); starts {
		return d, true
	}
	lack, ends := s.describeLackingBackup()
	message := fmt.Sprintf("the StatefulSet is gone, and must not come back with etcd %s yet: %s; "+
		"or declare the version that runs", s.Declared.Version, lack)
	if ends {
		return wait(recheck, "%s", message)
	}
	return block("%s", message)
}

// waitForBackup has an upgrade wait. What heals members does not wait for it.
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

// describeLackingBackup says what an upgrade waits for, and whether that ends by itself; empty if it
// has not to wait.
func (s State) describeLackingBackup() (lack string, ends bool) {
	if !s.lacksBackup() {
		return "", false
	}
	return s.describeAwaitedBackup(fmt.Sprintf("before etcd %s is rolled out", s.Declared.Version), "Upgrade")
}

// isElsewhere reports whether a backup is not where git declares it.
func (s State) isElsewhere(b *Backup) bool { return b != nil && b.To != s.Declared.BackupTo }

// describeAwaitedBackup says how far the backup is that something waits for, which is an occasion of
// spec.backup.before, and whether that ends by itself.
func (s State) describeAwaitedBackup(before, occasion string) (lack string, ends bool) {
	job, started := s.startedBackup()
	before += ", a backup is to be taken"
	again := fmt.Sprintf("start another one: kubectl create job --from=cronjob/%s-backup NAME", s.Name)
	if occasion == "Deletion" && s.Backups.To != s.Declared.BackupTo {
		again = "have another one started: kubectl delete job " + job.Name // the CronJob would store it elsewhere
	}
	switch {
	case s.Backups.Foreign != "":
		return before + ", and none can be: " + s.Backups.Foreign, false
	case s.Backups.Hidden != "":
		return before + ", and whether there is one is not known: " + s.Backups.Hidden, true
	case !started && s.earlierBackupRuns() != "":
		return fmt.Sprintf("%s, once Job %s has ended, which was started before that was declared", before,
			s.earlierBackupRuns()), true
	case !started:
		return before + ", and none can be started yet", true
	case s.yetToCome(job):
		return fmt.Sprintf("%s, and Job %s was made at %s, which is yet to come: see to the clocks, and have another "+
			"one started: kubectl delete job %s", before, job.Name, job.CreatedAt.UTC().Format(time.RFC3339),
			job.Name), false
	case job.Phase == JobFailed:
		return fmt.Sprintf("%s, and Job %s has failed: %s; cure that, and %s; or take %s out of "+
			"spec.backup.before", before, job.Name, cmp.Or(job.Message, "it does not say why"), again, occasion), false
	case job.Phase == JobSucceeded && occasion == "Deletion" && s.isElsewhere(job.Backup):
		return fmt.Sprintf("%s in %s, and Job %s has stored one in %s; %s", before, s.Declared.BackupTo, job.Name,
			cmp.Or(job.Backup.To, "a place that it does not name"), again), false
	case job.Phase == JobSucceeded:
		return fmt.Sprintf("%s, and Job %s has ended without saying that it took one of this cluster; "+
			"look at its log, and %s", before, job.Name, again), false
	case job.Message != "":
		return fmt.Sprintf("%s: Job %s runs: %s", before, job.Name, job.Message), true
	}
	return fmt.Sprintf("%s: Job %s runs", before, job.Name), true
}
