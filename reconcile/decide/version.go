package decide

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/internal/etcdversion"
)

// minorOf returns the minor version of a text such as 3.6.1 or 3.6, or zero if the text cannot be parsed.
func minorOf(text string) etcdversion.MajorMinor {
	m, _ := etcdversion.ParseMajorMinor(text)
	return m
}

// steps returns how many minor versions newer to is than from.
func steps(from, to etcdversion.Version) int { return to.MajorMinor().Steps(from.MajorMinor()) }

// departures lists the oldest patch releases from which an upgrade to the next minor version is allowed, and the
// recommended releases. With older releases, removed members may reappear, or learners may prevent the upgrade (etcd:
// Upgrade etcd from v3.5 to v3.6, and from v3.6 to v3.7; hard cases H37, H38).
var departures = map[etcdversion.MajorMinor]struct {
	least  etcdversion.Version
	better string
}{
	minorOf("3.5"): {etcdversion.Must("3.5.26"), ", preferably 3.5.32 or newer"},
	minorOf("3.6"): {etcdversion.Must("3.6.11"), ""},
}

// Running returns the versions that members currently report. If a reported version cannot be parsed, the pod's version
// is used.
func (s State) Running() []etcdversion.Version {
	var list []etcdversion.Version
	for _, m := range s.Membership.Members {
		if !m.Answers {
			continue
		}
		if v, err := s.runs(m); err == nil {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, etcdversion.Version.Compare)
	return list
}

// runs returns the version of a responding member, or the version of its pod if the reported version cannot be parsed.
func (s State) runs(m Member) (etcdversion.Version, error) {
	v, err := etcdversion.ParseRunning(m.Version)
	if ordinal, ours := s.OrdinalOf(m); err != nil && ours {
		v, err = etcdversion.Parse(s.Replica(ordinal).PodVersion)
	}
	return v, err
}

// running returns the versions that members run, in ascending order: the versions of responding members, or else the
// version in the status, or else the versions of the pods or, without pods, the versions recorded on the claims.
// Declared versions that never ran do not count (hard case H101). The status does not count either if a member reports
// an unreadable version.
func (s State) running() []etcdversion.Version {
	if list := s.Running(); len(list) > 0 {
		return list
	}
	if v, err := etcdversion.ParseRunning(s.ReportedVersion); err == nil && s.unreadable() == "" {
		return []etcdversion.Version{v}
	}
	var list []etcdversion.Version
	for _, r := range s.Replicas {
		if v, err := r.lastVersion(); err == nil && s.Formed() {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, etcdversion.Version.Compare)
	return list
}

// unreadable names a member that reports something that is not a version, or returns "".
func (s State) unreadable() string {
	for _, m := range s.MembersInOrder() {
		if _, err := etcdversion.ParseRunning(m.Version); err != nil && m.Answers && m.Version != "" {
			return fmt.Sprintf("%s reports etcd version %q, which is not a valid version", s.nameOf(m), m.Version)
		}
	}
	return ""
}

// judgeVersion returns why the declared version cannot be rolled out from the running versions, with the step to take
// instead, or else whether etcd's data is prepared for it.
func (s State) judgeVersion() (refusal string, prepared bool) {
	runs := s.running()
	target, err := etcdversion.Parse(s.Declared.Version)
	if err != nil {
		return fmt.Sprintf("version %q is not valid", s.Declared.Version), false
	}
	if refusal := s.refusedByUnresponsive(target); refusal != "" {
		return refusal, false
	}
	if unreadable := s.unreadable(); unreadable != "" {
		return s.judgeUnread(unreadable, target)
	}
	if unknown := s.lastVersionUnknown(); unknown != "" && (len(runs) == 0 || s.lacksVersions()) {
		return unknown, false // the data of such a volume may be newer than that of the others
	}
	if len(runs) == 0 {
		return "", true // no version is known to have run
	}
	oldest, newest := runs[0], runs[len(runs)-1]
	switch {
	case s.adopting() && (steps(oldest, target) != 0 || steps(newest, target) != 0):
		return fmt.Sprintf("guests run etcd %s: the minor version can change once the last guest has left", newest),
			false
	case steps(oldest, target) > 1:
		return fmt.Sprintf("cannot upgrade etcd %s to %s: minor versions cannot be skipped. Declare a %s release first",
			oldest, target, oldest.MajorMinor().Next(1)), false
	case steps(newest, target) < -1:
		return fmt.Sprintf("cannot downgrade etcd %s by more than one minor version. Declare a %s release first",
			newest,
			newest.MajorMinor().Next(-1)), false
	case steps(oldest, target) == 1:
		if why := departure(oldest, target); why != "" {
			return fmt.Sprintf("etcd %s is running, and %s", oldest, why), false
		}
		// Members get a minor version only once that version can read every log.
		begun := s.onlyClaimsRemain() && steps(newest, target) == 0
		reads := begun || readsLog(target.MajorMinor(), s.Record.LogVersion)
		return "", reads && s.downgradeFinished() && s.knowsData(target.MajorMinor())
	case steps(oldest, target) < 0 && s.Record.JoinedTogether && !target.AtLeast(withMaxLearners):
		return fmt.Sprintf("two members joined this cluster at the same time, and etcd %s cannot read a log that "+
			"records this. Declare a %s release or newer", target, withMaxLearners.MajorMinor()), false
	case steps(oldest, target) < 0:
		return "", s.preparedFor(target.MajorMinor())
	case steps(newest, target) < 0 && s.onlyClaimsRemain():
		return "", false // the cluster may already have the newer version
	}
	return "", true
}

// onlyClaimsRemain reports whether only claims show which versions ran, unless the status names a version.
func (s State) onlyClaimsRemain() bool {
	return !s.recorded() && s.nothingReportsVersions()
}

// nothingReportsVersions reports whether neither members nor pods show which versions ran.
func (s State) nothingReportsVersions() bool { return !s.Membership.Known && !s.anyReplica(hasPod) }

// lacksVersions reports whether only claims show which versions ran, because the status is lost. The record does not
// contain the versions.
func (s State) lacksVersions() bool {
	_, err := etcdversion.ParseRunning(s.ReportedVersion)
	return err != nil && s.nothingReportsVersions()
}

// judgeUnread returns why the declared version cannot be rolled out while a member's version cannot be parsed. The
// cluster version is never newer than the oldest known minor version of a member, so all members can move to that minor
// version; any other version may be too far.
func (s State) judgeUnread(unreadable string, target etcdversion.Version) (refusal string, prepared bool) {
	var known []etcdversion.Version
	for _, m := range s.Membership.Members {
		if v, err := etcdversion.ParseRunning(m.Version); err == nil && m.Answers {
			known = append(known, v)
		}
	}
	if v, err := etcdversion.Parse(s.Objects.RunsVersion); err == nil && len(known) == 0 {
		known = append(known, v)
	}
	slices.SortFunc(known, etcdversion.Version.Compare)
	switch {
	case len(known) == 0:
		return fmt.Sprintf("%s: no other version is rolled out. Run a released etcd version on that member",
			unreadable), false
	case steps(known[0], target) == 0 && steps(known[len(known)-1], target) >= -1:
		return "", true
	}
	return fmt.Sprintf("%s: only minor version %s can be rolled out. Declare a %s release, or run a released etcd "+
		"version on that member", unreadable, known[0].MajorMinor(), known[0].MajorMinor()), false
}

// mayRoll reports whether the declared version can be rolled out from the running versions.
func (s State) mayRoll() bool {
	_, prepared := s.judgeVersion()
	return prepared
}

// mayRestart reports whether a pod that does not run etcd may be restarted with the declared version: the versions of
// the pod and in its claim allow it and, for an older minor version, etcd has prepared its data.
func (s State) mayRestart(r Replica) bool {
	if !s.Formed() {
		return true // no version has run yet
	}
	from, _ := r.lastVersion()
	target, err := etcdversion.Parse(s.Declared.Version)
	runs := s.Running()
	goesBack := steps(from, target) < 0 && s.Membership.Known && len(runs) > 0 && steps(runs[0], target) < 0
	prepared := s.Membership.Downgrade == target.MajorMinor().String()
	return err == nil && s.skips(r, target) == "" && (!goesBack || prepared)
}

// stepBegun reports whether new pods already get the declared minor version, which was judged before.
func (s State) stepBegun() bool {
	return s.hasStatefulSet() && minorOf(s.Objects.RunsVersion) == minorOf(s.Declared.Version)
}

// departure returns why a version is too old for an upgrade to the next minor version, or "".
func departure(from, target etcdversion.Version) string {
	known := departures[from.MajorMinor()]
	if from.AtLeast(known.least) {
		return ""
	}
	return fmt.Sprintf("upgrading to %s requires at least %s%s. Declare that release first",
		target, known.least, known.better)
}

// preparedFor reports whether etcd is downgrading to the target minor version and has converted all its data to that
// version's format. The data of an unresponsive member may still be in a newer version's format.
func (s State) preparedFor(target etcdversion.MajorMinor) bool {
	minor := target.String()
	for _, m := range s.Membership.Members {
		if m.Answers && m.StorageVersion != minor {
			return false
		}
	}
	return s.Membership.Downgrade == minor && s.knowsData(target)
}

// unresponsive returns the replicas of members that may have data and do not respond: members that etcd lists as
// started or, if the list is unknown, members recorded as sealed. Without a record, every replica counts.
func (s State) unresponsive() []Replica {
	var list []Replica
	members := s.listed()
	for _, r := range s.replicasInOrder() {
		m := members[r.Ordinal]
		recorded, _ := s.Record.Member(r.Ordinal)
		hasRun := m.Started || !s.Membership.Known && (recorded.Mode == Sealed || !s.recorded())
		if hasRun && !m.Answers && !s.volumeLost(r.Ordinal) {
			list = append(list, r)
		}
	}
	return list
}

// knowsData reports whether every member's data version is known before a minor version changes: each member responds,
// or a member's pod (or its claim, without a pod) already has that minor version.
func (s State) knowsData(target etcdversion.MajorMinor) bool {
	return len(s.unresponsive()) == 0 ||
		s.anyReplica(func(r Replica) bool {
			_, recorded := s.Record.Member(r.Ordinal)
			last, _ := r.lastVersion()
			return (recorded || !s.recorded()) && r.LostCluster == 0 && last.MajorMinor() == target
		})
}

// refusedByUnresponsive returns why an unresponsive member rules out the declared version, or "". The member may be
// running its pod's version or the version recorded on its claim.
func (s State) refusedByUnresponsive(target etcdversion.Version) string {
	for _, r := range s.unresponsive() {
		if refusal := s.skips(r, target); refusal != "" {
			return refusal
		}
	}
	return ""
}

// skips returns why an unresponsive member must not be restarted with the declared version, according to its pod's
// version and the version recorded on its claim, or "". A pod created with a newer version than the others run does not
// count: its data still has the others' version.
func (s State) skips(r Replica, target etcdversion.Version) string {
	name := s.ReplicaName(r.Ordinal) + " does not respond, and its "
	if storage := minorOf(r.LastUse.StorageVersion); target.MajorMinor().Compare(storage) < 0 {
		return fmt.Sprintf("%sdata was last written in the format of etcd %s: declare a %[2]s release", name, storage)
	}
	for _, last := range []struct{ what, version string }{
		{"pod was created with etcd ", r.PodVersion}, {"volume was last used by etcd ", r.LastUse.Version},
	} {
		from, err := etcdversion.Parse(last.version)
		if err != nil {
			continue
		}
		what := name + last.what + last.version
		switch n := steps(from, target); {
		case n > 1:
			return fmt.Sprintf("%s: minor versions cannot be skipped when upgrading to %s. Declare a %s release first",
				what,
				target, from.MajorMinor().Next(1))
		case n == 1 && departure(from, target) != "":
			return fmt.Sprintf("%s; %s", what, departure(from, target))
		}
	}
	return ""
}
