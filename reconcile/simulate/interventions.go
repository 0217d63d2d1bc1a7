package simulate

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// AddMember manually adds a voter to etcd's member list, as etcdctl does, if etcd allows it.
func (w *World) AddMember(n int) { w.addBehind(n, false) }

// AddLearner is like AddMember, but adds a learner.
func (w *World) AddLearner(n int) { w.addBehind(n, true) }

// AddStranger adds a learner that is not one of the cluster's replicas and never starts.
func (w *World) AddStranger() { w.addBehind(-1, true) }

// addBehind adds a member unless etcd refuses. etcd requires all members to be running voters. If the new member is a
// voter, the existing voters must be enough for the new quorum.
func (w *World) addBehind(n int, learner bool) {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		listed, voters := r.byOrdinal(n) != nil, len(r.voters())
		away := slices.ContainsFunc(r.members, func(m member) bool { return m.learner || !r.isUp(m.id) })
		if r.serves() && !listed && !away && (learner || voters >= decide.Quorum(voters+1)) {
			w.enlist(r, member{ordinal: n, learner: learner, byHand: true})
			w.commit(r)
			w.elect(r)
		}
	}
}

// RemoveMember manually removes a member from etcd's member list, if etcd allows it.
func (w *World) RemoveMember(n int) {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		if m := r.byOrdinal(n); m != nil && r.serves() && len(r.members) > 1 && !w.wasSplit(id) {
			before := len(w.violations)
			if w.mayRemove(r, *m) {
				w.removeMember(r, m.id)
			}
			w.violations = w.violations[:before] // a manual removal is not a violation
		}
	}
}

// RaiseAlarm makes the member of an ordinal raise an alarm.
func (w *World) RaiseAlarm(n int, kind decide.AlarmKind) {
	for _, r := range w.rafts {
		if m := r.byOrdinal(n); m != nil && r.serves() && r.isUp(m.id) &&
			!slices.Contains(r.alarms, decide.Alarm{ID: m.id, Kind: kind}) {
			r.alarms = append(r.alarms, decide.Alarm{ID: m.id, Kind: kind})
		}
	}
}

// FillDatabase makes the database of every member grow to 2Gi. From then on, each voter with a quota of at most 2Gi, or
// with an unknown quota, raises NOSPACE once clients can write.
func (w *World) FillDatabase() {
	w.dbSize, w.filled = fullSize, true
	for n := range w.volumes {
		w.changeVolume(n, func(v *volume) { v.data.size, v.data.inUse = 0, 0 })
	}
}

// Compact makes most of the space in every database unused, as after deletions and a compaction.
func (w *World) Compact() {
	for n := range w.volumes {
		w.changeVolume(n, func(v *volume) {
			v.data.size, _ = w.sizeOf(v.data)
			v.data.inUse = usualSize
		})
	}
	w.dbSize = usualSize
}

// raiseNoSpace makes voters whose database has reached its quota raise NOSPACE.
func (w *World) raiseNoSpace(r *raft) {
	if !w.filled || !r.serves() || !r.open {
		return
	}
	for _, m := range r.voters() {
		alarm := decide.Alarm{ID: m.id, Kind: decide.AlarmNoSpace}
		size, _ := w.sizeOf(w.volumes[m.ordinal].data)
		full := size >= fullSize && w.pods[m.ordinal].quota <= size
		if r.isUp(m.id) && full && !slices.Contains(r.alarms, alarm) {
			r.alarms = append(r.alarms, alarm)
		}
	}
}

// ClearAlarms disarms every alarm of the given kind.
func (w *World) ClearAlarms(kind decide.AlarmKind) {
	for _, r := range w.rafts {
		r.alarms = slices.DeleteFunc(r.alarms, func(a decide.Alarm) bool { return a.Kind == kind })
	}
}

// Heal ends every fault that can end by itself or by manual action: nodes and networks come back, unmanaged objects and
// unknown members are removed, and space is freed. Lost data stays lost.
func (w *World) Heal() {
	clear(w.mute)
	clear(w.slow)
	clear(w.apart)
	clear(w.unready)
	w.healLabels()
	w.cut, w.LockHolder, w.backups.refused, w.storeGivesNothing = false, "", false, false
	w.startsElsewhere = false
	w.recoveriesFail = false
	for name, o := range w.objects {
		if o.foreign {
			w.Delete(name)
		}
	}
	for n := range w.down {
		w.NodeDown(n, false)
	}
	w.PutBackCA()
	w.dbSize, w.filled = usualSize, false
	w.ClearAlarms(decide.AlarmNoSpace)
	w.RemoveMember(-1)
	for n := range w.pods {
		if isGuest(n) {
			w.NodeDown(n, false)
		}
	}
}

// Whole reports whether the cluster can come up again without manual action: a majority of the voters have their data
// on usable volumes. A cluster that has never formed needs only usable volumes.
func (w *World) Whole() bool {
	formed, whole := 0, 0
	for id, r := range w.rafts {
		if !r.formed {
			continue
		}
		formed++
		usable := 0
		for _, m := range r.voters() {
			if w.usable(m) && w.volumes[m.ordinal].data.cluster == id {
				usable++
			}
		}
		if usable >= decide.Quorum(len(r.voters())) && w.judged(r) {
			whole++
		}
	}
	if w.anyForced() {
		return false
	}
	return whole > 0 || formed == 0 && !w.anyVolume(func(v volume) bool {
		return v.hung || v.stranded != "" ||
			v.data.corrupt
	})
}

func (w *World) anyVolume(is func(volume) bool) bool {
	for _, v := range w.volumes {
		if is(v) {
			return true
		}
	}
	return false
}

// CommonVersion returns etcd's cluster version, such as 3.6, or an empty string if there is none.
func (w *World) CommonVersion() string {
	for id, r := range w.rafts {
		if r.formed && w.hasData(id) {
			return minorText(r.version)
		}
	}
	return ""
}
