package simulate

import (
	"cmp"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// differing is the error with which etcd exits if it finds at startup that a peer has different data.
const differing = "found data inconsistency with peers"

// Differ makes the data of an ordinal differ from the other members' data. etcd continues to serve.
func (w *World) Differ(n int) {
	if v := w.volumes[n]; v.data.member != 0 {
		v.data.variant = n + 1
		w.volumes[n] = v
	}
}

// RaiseNameless makes etcd raise CORRUPT without naming a member.
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

// checkData runs the leader's corruption check. The leader assumes that its own data is right, and raises the alarm for
// the first member with different data. Before etcd 3.6, the alarm does not name a member.
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

// variantOf identifies the data of a member: members with the same variant hold the same data.
func (w *World) variantOf(m member) int { return w.volumes[m.ordinal].data.variant }

// findsOthers reports whether a member that starts with data d finds a peer with different data.
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

// doubted reports whether Quorate can observe that members may hold different data.
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
	found := w.exists(w.customResource()) && !w.status.comparison.DiffersSince.IsZero()
	return found || w.comparisonDue(r) && slices.ContainsFunc(r.members,
		func(m member) bool { return w.variantOf(m) != w.variantOf(r.members[0]) })
}

// comparisonDue reports whether passes compare the data of the members because the last comparison was long ago and all
// members are healthy.
func (w *World) comparisonDue(r *raft) bool {
	s := decide.State{Now: w.now, Declared: w.Declared}
	if w.exists(w.customResource()) {
		s.Comparison = w.status.comparison
	}
	for _, m := range r.members {
		other := w.pods[m.ordinal].version != w.pods[r.members[0].ordinal].version
		if m.learner || isGuest(m.ordinal) || !w.answers(r, m) || other {
			return false
		}
	}
	return len(r.members) > 1 && s.ComparisonDue()
}

// compares reports whether passes compare the data of the members because they were created from a backup.
func (w *World) compares(r *raft) bool {
	voters := len(r.voters())
	return w.exists(w.configMap()) && w.record.Uncompared && voters >= w.Declared.Replicas && voters == len(r.members)
}

// hashOf returns the hash that a member reports for the newest revision that all members have.
func (w *World) hashOf(r *raft, m member) decide.Hash {
	oldest := uint64(0)
	for _, other := range r.voters() {
		if w.answers(r, other) {
			oldest = cmp.Or(min(cmp.Or(oldest, w.indexOf(other)), w.indexOf(other)), 1)
		}
	}
	return decide.Hash{Revision: int64(cmp.Or(oldest, 1)), Sum: uint32(w.variantOf(m))}
}

// usable reports whether the data of a member exists and etcd could start with it.
func (w *World) usable(m member) bool {
	v := w.volumes[m.ordinal]
	return v.data.member == m.id && !v.data.corrupt && v.stranded == "" && !v.hung && !v.terminating
}

// outvoted reports whether a majority of the voters holds the same data, which differs from the member's data.
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

// watchCopies records a violation if members may hold different data, and possibly correct data is discarded while
// different data is kept. A member that is down for an unrelated reason may lose its data while the members of a
// running majority hold the same data.
func (w *World) watchCopies(r *raft, m member) {
	needless := !r.isUp(m.id) && !w.pods[m.ordinal].stoppedByCheck() && w.judged(r)
	if m.learner || !w.doubted(r) || !w.usable(m) || w.outvoted(r, m) || needless {
		return
	}
	for _, other := range r.voters() {
		if w.usable(other) && w.variantOf(other) != w.variantOf(m) {
			w.violate("the data of %s, which may be right, is discarded, but %s keeps different data",
				w.replicaName(m.ordinal), w.replicaName(other.ordinal))
			return
		}
	}
}

// judged reports whether it is known which data is right: all members hold the same data, or a running majority does.
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
