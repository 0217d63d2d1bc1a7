package decide

import (
	"slices"
	"strings"
)

// etcd 3.7 reads no more what 3.5 has written into the log, and panics when it finds it ("unmarshal
// should never fail"; seen with 3.5.35, 3.6.16 and 3.7.3). 3.6 keeps such entries until it takes a
// snapshot, after 10,000 entries by default. Only preparing a downgrade makes it take one at once:
// so that is begun, waited for, and taken back.
var (
	readsNoOldLog = version{3, 7, 0}
	oldLog        = version{3, 6, 0}
)

// logVersion is the oldest minor version whose entries a member may have in its log: a member of an
// older version adds to it, and a prepared downgrade proves that all that is older than what runs
// has gone into a snapshot.
func (s State) logVersion(recorded string) string {
	runs := s.running()
	if len(runs) == 0 || Answering(s.Membership.Members) == 0 {
		return recorded
	}
	oldest, newest := minorOf(runs[0].full()), minorOf(runs[len(runs)-1].full())
	switch clear := readsNoOldLog.clear(recorded); {
	case !clear && oldest.compare(oldLog) >= 0 && newest.compare(readsNoOldLog) >= 0:
		return oldLog.String() // one reads it already; whoever let it start has seen to the others
	case !clear && oldest == newest && s.allAnswer() && s.preparedFor(oldest.next(-1)):
		return oldest.String()
	case clear && oldest.compare(oldLog) < 0:
		return oldest.String()
	}
	return recorded
}

// clear reports whether the version can read every log whose entries are of that minor version or
// newer.
func (v version) clear(since string) bool {
	oldest := minorOf(since + ".0")
	return v.compare(readsNoOldLog) < 0 || oldest.compare(oldLog) >= 0
}

func (s State) allAnswer() bool { return Answering(s.Membership.Members) == len(s.Membership.Members) }

// prepareUpgrade has etcd write out what the declared version could not read. Once a member runs
// that version, it has read it.
func prepareUpgrade(s State) (Decision, bool) {
	refusal, prepared := s.judgeVersion()
	target, _ := parseVersion(s.Declared.Version)
	if !s.rolls() || !s.Membership.Known || len(s.unsettled()) > 0 || refusal != "" || prepared || target.clear(s.Record.LogVersion) || !s.sameVersions() {
		return Decision{}, false
	}
	runs := s.running()
	before := runs[0].next(-1).String()
	switch s.Membership.Downgrade {
	case "":
		return act(EnableDowngrade{before}, "the logs may hold what etcd %s wrote and %s cannot read: have a downgrade prepared, which writes it out, and take that back",
			before, target.full())
	case before:
		return wait(recheckSettling, "etcd is writing out what %s cannot read; storage versions: %s", target.full(), strings.Join(s.storageVersions(), ", "))
	}
	return Decision{}, false
}

// restored reports whether no downgrade is under way, and the data of every member is of the
// version that it runs.
func (s State) restored() bool {
	if s.sameVersions() && slices.ContainsFunc(s.Membership.Members, lagsBehind) {
		return false
	}
	return s.Membership.Downgrade == ""
}

// lagsBehind reports whether the data of a member are of another minor version than it runs.
func lagsBehind(m Member) bool {
	return m.Answers && m.StorageVersion != "" && m.Version != "" && m.StorageVersion != minorOf(m.Version).String()
}

// sameVersions reports whether all members that answer run the same minor version.
func (s State) sameVersions() bool {
	runs := s.running()
	return len(runs) > 0 && minorOf(runs[0].full()) == minorOf(runs[len(runs)-1].full())
}

// describeRestoring says that what has been prepared is being taken back.
func (s State) describeRestoring() string {
	return "etcd is taking back what it has prepared; storage versions: " + strings.Join(s.storageVersions(), ", ")
}
