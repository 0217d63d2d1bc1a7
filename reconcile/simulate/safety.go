package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// standing describes the data of one etcd cluster at one point in time.
type standing struct {
	// whole is true if one volume still holds every acknowledged entry.
	whole bool
	// copies contains the voters whose data is on a volume that will be kept without intervention. A volume that is
	// being deleted is kept while a pod uses it. The value is true if the volume is safe: it is not being deleted.
	copies map[decide.ID]bool
}

// safe returns the number of voters on safe volumes.
func (s standing) safe() int {
	n := 0
	for _, safe := range s.copies {
		if safe {
			n++
		}
	}
	return n
}

// footing maps the key of each cluster to its standing.
type footing map[decide.ID]standing

// footing inspects the volumes directly, independently of records and rules.
func (w *World) footing() footing {
	f := footing{}
	for id, r := range w.rafts {
		if !r.formed || w.isNobodys(r) || w.isLost(id) {
			continue
		}
		s := standing{whole: w.couldBeHad(id, r), copies: map[decide.ID]bool{}}
		for _, m := range r.voters() {
			if w.isCopy(id, r, m) {
				s.copies[m.id] = !w.volumes[m.ordinal].terminating
			}
		}
		f[id] = s
	}
	return f
}

// stays reports whether the volume of an ordinal will be kept without intervention. A volume deleted by a pass will
// not. Any other volume that is being deleted is kept while a pod uses it and the pod itself is kept.
func (w *World) stays(n int) bool {
	v, there := w.volumes[n]
	return there && !v.givenUp && (!v.terminating || w.podStays(n))
}

func (w *World) podStays(n int) bool {
	p, there := w.pods[n]
	kept := w.letGo || w.exists(w.statefulSet()) && n < w.set.replicas
	return there && !p.terminating && kept
}

// couldBeHad reports whether a volume that will be kept holds every entry that the cluster has acknowledged.
func (w *World) couldBeHad(id decide.ID, r *raft) bool {
	for n, v := range w.volumes {
		if v.data.member != 0 && w.stays(n) && !w.leaves(n) && !w.strandedForLong(v) && w.isSound(n) &&
			w.lengthFor(id, v.data) >= r.acknowledged {
			return true
		}
	}
	return false
}

// isSound reports whether the data on a volume can be trusted.
func (w *World) isSound(n int) bool {
	d := w.volumes[n].data
	r := w.rafts[d.cluster]
	if d.corrupt || r == nil {
		return !d.corrupt
	}
	m := r.byID(d.member)
	return m == nil || !w.outvoted(r, *m)
}

// lengthFor returns the number of entries of a cluster's log that d holds. If the cluster of d was split off from the
// given cluster, only the entries from before the split count.
func (w *World) lengthFor(cluster decide.ID, d data) uint64 {
	length := d.index
	for id := d.cluster; id != cluster; {
		r := w.rafts[id]
		if r == nil || r.splitFrom == 0 {
			return 0
		}
		length, id = min(length, r.splitAt), r.splitFrom
	}
	return length
}

// isCopy reports whether a voter's data counts as a copy. The data must exist, be sound, and belong to the cluster. The
// member must not be due for replacement under the spec.
func (w *World) isCopy(id decide.ID, r *raft, m member) bool {
	if isGuest(m.ordinal) && (!r.isUp(m.id) || w.releases(m.id)) {
		return false
	}
	v := w.volumes[m.ordinal]
	mine := v.data.cluster == id && v.data.member == m.id
	late := w.Declared.ReplaceAfter > 0 && !r.isUp(m.id) &&
		(w.lasts(m.downSince, w.Declared.ReplaceAfter) || w.lasts(m.missedSince, w.Declared.ReplaceAfter))
	if p := w.pods[m.ordinal]; w.Declared.ReplaceAfter > 0 && w.mute[m.ordinal] && !p.ready {
		late = true // Quorate cannot observe that the member serves
	}
	// Different data does not count as wrong until etcd reports it.
	wrong := v.data.corrupt || w.doubted(r) && w.outvoted(r, m)
	goes := v.terminating && w.idleForLong(m.ordinal) && !w.doubted(r)
	return mine && w.stays(m.ordinal) && !wrong && !late && !goes && !w.strandedForLong(v)
}

// lasts reports whether a condition that began at since has lasted for at least d. since is zero if the condition has
// not begun.
func (w *World) lasts(since time.Time, d time.Duration) bool {
	return !since.IsZero() && w.now.Sub(since) >= d
}

// idleForLong reports whether a pod has been down for so long that its data no longer counts.
func (w *World) idleForLong(n int) bool {
	p := w.pods[n]
	idle, patience := w.now.Sub(p.since), 30*time.Second
	if p.failing {
		patience = 2 * time.Minute
	}
	return !p.up && (idle >= patience || p.crashes >= 4 && idle >= time.Minute)
}

// graceOfNode is the time for which a node may be gone before its volume counts as lost. A replaced node registers
// within minutes.
const graceOfNode = 10 * time.Minute

func (w *World) strandedForLong(v volume) bool {
	return v.stranded != "" && w.now.Sub(v.strandedAt) >= cmp.Or(w.Declared.ReplaceAfter, graceOfNode)
}

// watched executes one of Quorate's writes, and records a violation if the write loses acknowledged data or copies that
// are needed.
func (w *World) watched(name string, do func()) {
	before := w.footing()
	surplus := w.surplus()
	do()
	if w.goesWithData() {
		return // the spec requests it
	}
	after := w.footing()
	for _, id := range slices.Sorted(maps.Keys(before)) {
		left, still := after[id]
		if still {
			w.discountOutvoted(id, before[id])
		}
		if what := before[id].lostTo(left, w.wanted(), surplus); still && what != "" {
			w.violate("%s: because of this write, %s", name, what)
		}
	}
}

// IsLastCopy reports whether acknowledged data would be lost without the volume of an ordinal.
func (w *World) IsLastCopy(n int) bool {
	without := w.Clone()
	delete(without.volumes, n)
	after := without.footing()
	for id, before := range w.footing() {
		if before.whole && !after[id].whole {
			return true
		}
	}
	return false
}

// surplus reports whether the cluster has more members than declared, so that one member must be removed.
func (w *World) surplus() bool {
	r, _ := w.reachable()
	return r != nil && len(r.members) > w.wanted()
}

// lostTo describes the loss that is not allowed, or returns an empty string. Members on volumes being deleted may be
// removed one at a time if all other copies exist and more than two members are declared. If the cluster has more
// members than declared, one member may be removed.
func (s standing) lostTo(after standing, declared int, surplus bool) string {
	spare := 0
	if declared > 2 {
		spare = 1
	}
	copies, left, safe, stillSafe := len(s.copies), len(after.copies), s.safe(), after.safe()
	switch {
	case s.whole && !after.whole:
		return "acknowledged data is lost"
	case stillSafe < safe && stillSafe < min(declared, safe) && !surplus:
		return fmt.Sprintf("the number of voters on safe volumes falls from %d to %d of %d declared", safe, stillSafe,
			declared)
	case left < copies && left < min(declared-spare, copies):
		return fmt.Sprintf("the number of copies falls from %d to %d of %d declared", copies, left, declared)
	}
	return ""
}

// discountOutvoted removes the copies of voters that are outvoted after the write. Their data was already wrong before
// the write, but once a member without data is removed, a smaller majority suffices to show that.
func (w *World) discountOutvoted(id decide.ID, s standing) {
	r := w.rafts[id]
	for _, m := range r.voters() {
		if w.doubted(r) && w.outvoted(r, m) {
			delete(s.copies, m.id)
		}
	}
}

// judgeDone records a violation if the verdict is Done while the volume of a member is stranded or being deleted.
func (w *World) judgeDone(d decide.Decision) {
	if d.Verdict != decide.Done || w.Declared.Lifecycle != decide.Running || w.Declared.Suspended ||
		w.Declared.Orphaned != "" {
		return
	}
	r, _ := w.reachable()
	if r == nil {
		return
	}
	for _, m := range r.voters() {
		if v := w.volumes[m.ordinal]; v.data.member == m.id && (v.terminating || v.stranded != "") {
			w.violate("the verdict is %s while the volume of %s is lost or being deleted", d.Verdict,
				w.replicaName(m.ordinal))
		}
	}
}

// judgeDeletion records a violation if a volume is deleted before the cluster has removed its member.
func (w *World) judgeDeletion(n int) {
	d := w.volumes[n].data
	r := w.rafts[d.cluster]
	if d.member == 0 || r == nil || !r.formed {
		return
	}
	if letGo := slices.Contains(r.removed, d.member); letGo || w.isNobodys(r) || w.isLost(d.cluster) ||
		w.strandedForLong(w.volumes[n]) {
		return
	}
	if m := r.byID(d.member); m != nil && m.learner && w.wasSplit(d.cluster) {
		return // the new cluster has a voter's data
	}
	w.violate("the volume of %s is deleted, but its cluster has not removed the member", w.replicaName(n))
}
