package decide

import (
	"slices"
	"strings"

	"quorate.dev/quorate/internal/etcdversion"
)

// etcd 3.7 can no longer read log entries written by etcd 3.5, and panics when it finds them ("unmarshal should never
// fail"; seen with 3.5.35, 3.6.16 and 3.7.3). etcd 3.6 keeps such entries until it takes a snapshot, after 10,000
// entries by default. Only the preparation of a downgrade makes etcd take a snapshot immediately, so Quorate enables a
// downgrade, waits until it is prepared, and cancels it.
var (
	readsNoOldLog = minorOf("3.7")
	oldLog        = minorOf("3.6")
)

// logVersion returns the oldest minor version whose entries a member may have in its log. A member of an older version
// adds such entries. A prepared downgrade proves that everything older than the running version is in a snapshot.
func (s State) logVersion(recorded string) string {
	runs := s.running()
	if len(runs) == 0 || Answering(s.Membership.Members) == 0 {
		return recorded
	}
	oldest, newest := runs[0].MajorMinor(), runs[len(runs)-1].MajorMinor()
	switch clear := readsLog(readsNoOldLog, recorded); {
	case !clear && oldest.Compare(oldLog) >= 0 && newest.Compare(readsNoOldLog) >= 0:
		return oldLog.String() // a member already reads it; the others were checked before it started
	case !clear && oldest == newest && s.allAnswer() && s.preparedFor(oldest.Next(-1)):
		return oldest.String()
	case clear && oldest.Compare(oldLog) < 0:
		return oldest.String()
	}
	return recorded
}

// readsLog reports whether a minor version can read every log whose entries are from version since or newer.
func readsLog(v etcdversion.MajorMinor, since string) bool {
	oldest := minorOf(since)
	return v.Compare(readsNoOldLog) < 0 || oldest.Compare(oldLog) >= 0
}

func (s State) allAnswer() bool { return Answering(s.Membership.Members) == len(s.Membership.Members) }

// clearsLogBy returns the minor version to which a downgrade must be temporarily enabled so that etcd writes a snapshot
// of the log entries that the declared version cannot read. It returns "" if no rollout is due, if the declared version
// is refused or can read the log, or if the data is already prepared. It also returns "" if members run different minor
// versions, because a member that runs the declared version has already read the log.
func (s State) clearsLogBy() string {
	refusal, prepared := s.judgeVersion()
	stepsUp := refusal == "" && !prepared && !readsLog(minorOf(s.Declared.Version), s.Record.LogVersion)
	if !s.rolls() || !stepsUp || !s.sameVersions() {
		return ""
	}
	return s.running()[0].MajorMinor().Next(-1).String()
}

// prepareUpgrade makes etcd write a snapshot of the log entries that the declared version cannot read.
func prepareUpgrade(s State) (Decision, bool) {
	before, target := s.clearsLogBy(), s.Declared.Version
	if before == "" || !s.settled() || s.lacksMember() || s.lacksBackup() || s.heldByAlarm() != "" {
		return Decision{}, false
	}
	switch s.Membership.Downgrade {
	case "":
		return act(EnableDowngrade{before},
			"the logs may hold entries that etcd %s wrote and %s cannot read: temporarily enabling a downgrade "+
				"so that etcd writes them out", before, target)
	case before:
		return wait(recheckSettling, "etcd is writing out log entries that %s cannot read; storage versions: %s",
			target,
			strings.Join(s.storageVersions(), ", "))
	}
	return Decision{}, false
}

// downgradeFinished reports whether no downgrade is in progress, and every member's storage version matches the version
// that it runs.
func (s State) downgradeFinished() bool {
	if s.sameVersions() && slices.ContainsFunc(s.Membership.Members, lagsBehind) {
		return false
	}
	return s.Membership.Downgrade == ""
}

// lagsBehind reports whether a member's data has a different minor version than the member runs.
func lagsBehind(m Member) bool {
	runs, err := etcdversion.ParseRunning(m.Version)
	return m.Answers && err == nil && m.StorageVersion != "" && m.StorageVersion != runs.MajorMinor().String()
}

// sameVersions reports whether all responding members run the same minor version.
func (s State) sameVersions() bool {
	runs := s.running()
	return len(runs) > 0 && runs[0].MajorMinor() == runs[len(runs)-1].MajorMinor()
}

// describeRestoring reports that a prepared downgrade is being reverted.
func (s State) describeRestoring() string {
	return "etcd is reverting the prepared downgrade; storage versions: " + strings.Join(s.storageVersions(), ", ")
}
