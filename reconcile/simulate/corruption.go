package simulate

import (
	"cmp"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// differing is what etcd ends with when it finds, before it serves anybody, that a peer's data
// differ from its own.
const differing = "found data inconsistency with peers"

// Differ changes the data of an ordinal so that etcd serves on, with other data than the others.
func (w *World) Differ(n int) {
	if v := w.volumes[n]; v.data.member != 0 {
		v.data.variant = n + 1
		w.volumes[n] = v
	}
}

// RaiseNameless lets etcd raise CORRUPT without naming anybody.
func (w *World) RaiseNameless() {
	for _, r := range w.rafts {
		if r.serves() {
			r.raise(0)
		}
	}
}

func (r *raft) raise(id decide.ID) {
	alarm := decide.Alarm{ID: id, Kind: decide.AlarmCorrupt}
	r.disarm(alarm)
	r.alarms = append(r.alarms, alarm)
}

// checkData is the leader's check: it takes itself for right, and blames the first member that
// differs. Before 3.6 it names nobody.
func (w *World) checkData(r *raft) {
	if !w.ChecksData || !r.serves() {
		return
	}
	leader := r.byID(r.leader)
	for _, m := range r.members {
		if !r.isUp(m.id) || w.variantOf(m) == w.variantOf(*leader) {
			continue
		}
		if r.version < 6 {
			r.raise(0)
			return
		}
		r.raise(m.id)
		return
	}
}

// variantOf tells apart the data of members: those with the same hold the same.
func (w *World) variantOf(m member) int { return w.volumes[m.ordinal].data.variant }

// findsOthers reports whether a member that starts on its data finds a peer that serves others.
func (w *World) findsOthers(d data) bool {
	r := w.rafts[d.cluster]
	for _, m := range r.members {
		if m.id != d.member && r.isUp(m.id) && w.pods[m.ordinal].up && w.variantOf(m) != d.variant {
			return true
		}
	}
	return false
}

func (p pod) stoppedByCheck() bool { return !p.ready && strings.HasSuffix(p.message, differing) }

// doubted reports whether anybody can know that members may hold different data.
func (w *World) doubted(r *raft) bool {
	for _, alarm := range r.alarms {
		if alarm.Kind == decide.AlarmCorrupt {
			return true
		}
	}
	for _, m := range r.voters() {
		if w.pods[m.ordinal].stoppedByCheck() {
			return true
		}
	}
	return false
}

// compares reports whether a pass has the members compared that were made from one backup.
func (w *World) compares(r *raft) bool {
	voters := len(r.voters())
	return w.exists(w.configMap()) && w.record.Uncompared && voters >= w.Declared.Replicas && voters == len(r.members)
}

// hashOf is the hash that a member gives, at the revision that all of them have.
func (w *World) hashOf(r *raft, m member) decide.Hash {
	oldest := uint64(0)
	for _, other := range r.voters() {
		if w.answers(r, other) {
			oldest = cmp.Or(min(cmp.Or(oldest, w.indexOf(other)), w.indexOf(other)), 1)
		}
	}
	return decide.Hash{Revision: int64(cmp.Or(oldest, 1)), Sum: uint32(w.variantOf(m))}
}

// usable reports whether the data of a member are there, and etcd could start on them.
func (w *World) usable(m member) bool {
	v := w.volumes[m.ordinal]
	return v.data.member == m.id && !v.data.corrupt && v.stranded == "" && !v.hung && !v.terminating
}

// outvoted reports whether most voters hold other data than that one.
func (w *World) outvoted(r *raft, m member) bool {
	votes := map[int]int{}
	for _, voter := range r.voters() {
		if w.usable(voter) || r.isUp(voter.id) {
			votes[w.variantOf(voter)]++
		}
	}
	for variant, n := range votes {
		if n >= decide.Quorum(len(r.voters())) && variant != w.variantOf(m) {
			return true
		}
	}
	return false
}

// watchCopies notes when a copy is given up that could be good, while it is known that members may
// hold different data and one that does stays. Nothing hangs on one that is down, for a reason of
// its own, while a majority is up and holds the same.
func (w *World) watchCopies(r *raft, m member) {
	needless := !r.isUp(m.id) && !w.pods[m.ordinal].stoppedByCheck() && w.judged(r)
	if m.learner || !w.doubted(r) || !w.usable(m) || w.outvoted(r, m) || needless {
		return
	}
	for _, other := range r.voters() {
		if w.usable(other) && w.variantOf(other) != w.variantOf(m) {
			w.violate("the copy of %s is given up, which could be good, and %s keeps other data",
				w.replicaName(m.ordinal), w.replicaName(other.ordinal))
			return
		}
	}
}

// judged reports whether it can be known without a person whose data are right: all hold the same,
// or a majority that is up does.
func (w *World) judged(r *raft) bool {
	variants, up := map[int]bool{}, map[int]int{}
	voters := r.voters()
	for _, m := range voters {
		if w.usable(m) {
			variants[w.variantOf(m)] = true
		}
		if r.isUp(m.id) {
			up[w.variantOf(m)]++
		}
	}
	if len(variants) < 2 {
		return len(voters) > 1 || !w.doubted(r)
	}
	for _, n := range up {
		if n >= decide.Quorum(len(voters)) {
			return true
		}
	}
	return false
}
