package simulate

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// minorOf returns the minor number of an etcd 3 version or minor version, or zero if it cannot be parsed.
func minorOf(version string) int {
	m, _ := etcdversion.ParseMajorMinor(version)
	return m.Minor
}

// minorText returns the minor version for a minor number, such as 3.6 for 6, or an empty string for zero.
func minorText(minor int) string {
	if minor == 0 {
		return ""
	}
	return etcdversion.MajorMinor{Major: 3, Minor: minor}.String()
}

// saysStorage is the first minor version that reports its storage version.
const saysStorage = 6

// settleVersion sets the cluster version as etcd does: to the oldest version of a member, once all members have
// reported their versions, or to the target of a downgrade. A downgrade ends once all members run its target. Members
// store the cluster version with their data.
func (w *World) settleVersion(r *raft) {
	if !r.serves() {
		return
	}
	oldest, newest, all := 0, 0, true
	for _, m := range r.members {
		runs := minorOf(w.pods[m.ordinal].version)
		if !r.isUp(m.id) {
			all = false
			continue
		}
		if oldest == 0 || runs < oldest {
			oldest = runs
		}
		newest = max(newest, runs)
	}
	switch {
	case r.downgrade != 0:
		r.version = r.downgrade
		if all && newest == r.downgrade {
			r.downgrade = 0
		}
	case r.version == 0, all && oldest > r.version:
		r.version = oldest
	}
	for _, m := range r.members {
		if v := w.volumes[m.ordinal]; r.isUp(m.id) {
			v.data.version, v.data.ran = r.version, w.pods[m.ordinal].version
			w.volumes[m.ordinal] = v
		}
	}
}

// readsNoOldLog is the first minor version that cannot read log entries written by versions before saysStorage.
const readsNoOldLog = 7

// takesTwoLearners is the first minor version that can allow more than one learner.
const takesTwoLearners = 6

// settleLogs updates the storage version and the log version of running members. The storage version becomes the
// cluster version. The log holds the entries that the oldest member has written since the last snapshot. Preparing a
// downgrade takes a snapshot.
func (w *World) settleLogs(r *raft) {
	oldest := 0
	for _, m := range r.members {
		if runs := minorOf(w.pods[m.ordinal].version); r.isUp(m.id) && (oldest == 0 || runs < oldest) {
			oldest = runs
		}
	}
	inherited := w.volumes[r.byID(r.leader).ordinal].data.wrote
	for _, m := range r.members {
		v := w.volumes[m.ordinal]
		if !r.isUp(m.id) {
			continue
		}
		if v.data.wrote == 0 {
			v.data.wrote = inherited
		}
		if says := minorOf(w.pods[m.ordinal].version) >= saysStorage; says && v.data.storage != r.version {
			if r.downgrade != 0 {
				v.data.wrote = 0
			}
			v.data.storage = r.version
		}
		if v.data.wrote == 0 || oldest < v.data.wrote {
			v.data.wrote = oldest
		}
		w.volumes[m.ordinal] = v
	}
}

// refusesVersion returns etcd's last message if etcd does not start because of the version of the data. Skipping a
// minor version is a violation although etcd does not refuse it.
func (w *World) refusesVersion(n int, d data, p pod) string {
	runs := minorOf(p.version)
	if r := w.rafts[d.cluster]; r != nil && r.joinedTogether && runs < takesTwoLearners {
		w.violate("%s runs etcd %s, which cannot read a log in which two members joined together", w.replicaName(n),
			p.version)
	}
	w.judgePatch(n, d, p)
	switch {
	case d.version == 0:
		return ""
	case runs < d.version:
		return fmt.Sprintf("invalid downgrade; server version is lower than determined cluster version %s",
			minorText(d.version))
	case runs >= readsNoOldLog && d.wrote < saysStorage:
		return "panic: unmarshal should never fail"
	case runs > d.version+1:
		w.violate("%s runs etcd %s on data of %s", w.replicaName(n), p.version, minorText(d.version))
	}
	return ""
}

// judgeRestart records a violation if a restart gives a pod an etcd version older than the version of its data, unless
// the pod already runs an older version. If another running member has an older version, the cluster accepts it, which
// can happen if the declared version changes during bootstrap.
func (w *World) judgeRestart(n int) {
	d, p := w.volumes[n].data, w.pods[n]
	if r := w.rafts[d.cluster]; r != nil && slices.ContainsFunc(r.members, func(m member) bool {
		return r.isUp(m.id) && minorOf(w.pods[m.ordinal].version) < d.version
	}) {
		return
	}
	file, _ := w.record.Member(n)
	if file.Mode == decide.Sealed && w.set.version != "" && minorOf(w.set.version) < d.version &&
		minorOf(p.version) >= d.version {
		w.violate("%s is restarted with etcd %s on data of %s", w.replicaName(n), w.set.version, minorText(d.version))
	}
}

// leavesFrom maps a minor number to its oldest patch release from which the next minor version may be started.
var leavesFrom = map[int]etcdversion.Version{5: etcdversion.Must("3.5.26"), 6: etcdversion.Must("3.6.11")}

// judgePatch records a violation if a minor version starts with data that was last used by a patch release that is too
// old for the upgrade.
func (w *World) judgePatch(n int, d data, p pod) {
	before, err := etcdversion.Parse(d.ran)
	if err == nil && minorOf(p.version) == before.Minor+1 && !before.AtLeast(leavesFrom[before.Minor]) {
		w.violate("%s runs etcd %s on data of %s, but a newer patch release is required first", w.replicaName(n),
			p.version, d.ran)
	}
}
