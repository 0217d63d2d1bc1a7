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
	// Since is when Kubernetes was given the schedule; zero if it has none.
	Since time.Time `json:"since,omitzero"`
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

// NewestFailure is the Job that failed last, if no backup was begun after it; nil if there is none.
func (b Backups) NewestFailure() *BackupJob {
	var newest *BackupJob
	for i := range b.Jobs {
		j := &b.Jobs[i]
		since := b.Last == nil || !b.Last.StartedAt.After(j.CreatedAt)
		if j.Phase == JobFailed && since && (newest == nil || j.CreatedAt.After(newest.CreatedAt)) {
			newest = j
		}
	}
	return newest
}

func (b Backups) anyRuns() bool {
	return slices.ContainsFunc(b.Jobs, func(j BackupJob) bool { return j.Phase == JobRuns })
}

// Runs reports whether a Job of that name runs.
func (b Backups) Runs(job string) bool {
	return slices.ContainsFunc(b.Jobs, func(j BackupJob) bool { return j.Name == job && j.Phase == JobRuns })
}

// NewerBackup is the one of two that was begun later; of two that were begun together, as by two pods
// of a Job, the one that is verified, or else b, which was seen later. nil stands for none.
func NewerBackup(a, b *Backup) *Backup {
	switch {
	case a == nil || b == nil:
		return cmp.Or(a, b)
	case b.StartedAt.After(a.StartedAt), b.StartedAt.Equal(a.StartedAt) && (b.Verified || !a.Verified):
		return b
	}
	return a
}

// startedBackup is the Job that a pass has started for this generation of the custom resource.
func (s State) startedBackup() (BackupJob, bool) {
	for _, job := range s.Backups.Jobs {
		if s.Generation != 0 && job.Generation == s.Generation {
			return job, true
		}
	}
	return BackupJob{}, false
}

// earlierBackupRuns is the Job that a pass has started for an earlier generation and that still runs; empty
// if there is none. However often git changes, one Job takes a backup at a time.
func (s State) earlierBackupRuns() string {
	for _, job := range s.Backups.Jobs {
		if job.Generation != 0 && job.Generation != s.Generation && job.Phase == JobRuns {
			return job.Name
		}
	}
	return ""
}

// hasBackupSince reports whether a backup of this cluster is known that was begun since then, and that
// was verified where git wants that.
func (s State) hasBackupSince(since time.Time) bool {
	last := s.Backups.Last
	return last != nil && last.ClusterID == s.Record.ClusterID && !last.StartedAt.Before(since) &&
		(last.Verified || !s.Declared.VerifiesBackups)
}

// canBackUp reports whether etcd can be backed up, and it would be known.
func (s State) canBackUp() bool {
	return s.Membership.Known && s.Record.ClusterID != 0 && s.Generation != 0 && s.toRun() &&
		s.Backups.Hidden == "" && s.Backups.Foreign == ""
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
	if _, started := s.startedBackup(); started || !s.canBackUp() || s.earlierBackupRuns() != "" {
		return Decision{}, false
	}
	switch {
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
// a pass has started one: who cures what made that one fail need not wait for another pass.
func (s State) lacksBackup() bool {
	job, started := s.startedBackup()
	return s.needsBackup() && !(started && s.hasBackupSince(job.CreatedAt))
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
	job, started := s.startedBackup()
	before := fmt.Sprintf("before etcd %s is rolled out, a backup is to be taken", s.Declared.Version)
	again := fmt.Sprintf("start another one: kubectl create job --from=cronjob/%s-backup NAME", s.Name)
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
	case job.Phase == JobFailed:
		return fmt.Sprintf("%s, and Job %s has failed: %s; cure that, and %s; or take Upgrade out of "+
			"spec.backup.before", before, job.Name, cmp.Or(job.Message, "it does not say why"), again), false
	case job.Phase == JobSucceeded:
		return fmt.Sprintf("%s, and Job %s has ended without saying that it took one of this cluster; "+
			"look at its log, and %s", before, job.Name, again), false
	case job.Message != "":
		return fmt.Sprintf("%s: Job %s runs: %s", before, job.Name, job.Message), true
	}
	return fmt.Sprintf("%s: Job %s runs", before, job.Name), true
}
