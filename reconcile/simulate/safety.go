package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// standing is what the data of one cluster of etcd rests on at a moment.
type standing struct {
	// whole: all that was ever acknowledged could still be had from one volume.
	whole bool
	// copies are the voters whose data is on a volume that stays as long as nobody does anything:
	// also on one that is being deleted while a pod holds it.
	copies int
	// safe are those of them whose volume nobody is deleting.
	safe int
}

// footing is what all clusters rest on, by the key of each.
type footing map[decide.ID]standing

// footing looks at the volumes themselves: it knows no record and no rule.
func (w *World) footing() footing {
	f := footing{}
	for id, r := range w.rafts {
		if !r.formed || w.isNobodys(r) || w.isLost(id) {
			continue
		}
		s := standing{whole: w.couldBeHad(id, r)}
		for _, m := range r.voters() {
			if w.isCopy(id, r, m) {
				s.copies++
			}
			if w.isCopy(id, r, m) && !w.volumes[m.ordinal].terminating {
				s.safe++
			}
		}
		f[id] = s
	}
	return f
}

// stays reports whether the volume of an ordinal stays as long as nobody does anything: no pass has
// deleted it, and if somebody else has, a pod holds it that stays.
func (w *World) stays(n int) bool {
	v, there := w.volumes[n]
	return there && !v.givenUp && (!v.terminating || w.podStays(n))
}

func (w *World) podStays(n int) bool {
	p, there := w.pods[n]
	kept := w.letGo || w.exists(w.statefulSet()) && n < w.set.replicas
	return there && !p.terminating && kept
}

// couldBeHad reports whether a volume that stays holds all that the cluster has acknowledged.
func (w *World) couldBeHad(id decide.ID, r *raft) bool {
	for n, v := range w.volumes {
		if v.data.member != 0 && w.stays(n) && !w.strandedForLong(v) && w.isSound(n) &&
			w.lengthFor(id, v.data) >= r.acknowledged {
			return true
		}
	}
	return false
}

// isSound reports whether what is on a volume can be trusted.
func (w *World) isSound(n int) bool {
	d := w.volumes[n].data
	r := w.rafts[d.cluster]
	if d.corrupt || r == nil {
		return !d.corrupt
	}
	m := r.byID(d.member)
	return m == nil || !w.outvoted(r, *m)
}

// lengthFor is how much of a cluster's log some data holds: all of its own, and of that of a
// cluster that it was split off from, what there was by then.
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

// isCopy reports whether a voter's data is a copy that counts: there, sound, of that cluster, and
// not of one that git has declared to be given up by now.
func (w *World) isCopy(id decide.ID, r *raft, m member) bool {
	v := w.volumes[m.ordinal]
	mine := v.data.cluster == id && v.data.member == m.id
	late := w.Declared.ReplaceAfter > 0 && !r.isUp(m.id) && !m.downSince.IsZero() &&
		w.now.Sub(m.downSince) >= w.Declared.ReplaceAfter
	// Nobody knows of data that differ before something says so.
	wrong := v.data.corrupt || w.doubted(r) && w.outvoted(r, m)
	goes := v.terminating && w.idleForLong(m.ordinal) && !w.doubted(r)
	return mine && w.stays(m.ordinal) && !wrong && !late && !goes && !w.strandedForLong(v)
}

// idleForLong reports whether a pod has not come up for so long that nobody counts on it any more.
func (w *World) idleForLong(n int) bool {
	p := w.pods[n]
	idle, patience := w.now.Sub(p.since), 30*time.Second
	if p.failing {
		patience = 2 * time.Minute
	}
	return !p.up && (idle >= patience || p.crashes >= 4 && idle >= time.Minute)
}

// graceOfNode is how long a node may be gone until its volume counts as lost: whoever replaces a
// node registers it again within minutes.
const graceOfNode = 10 * time.Minute

func (w *World) strandedForLong(v volume) bool {
	return v.stranded != "" && w.now.Sub(v.strandedAt) >= cmp.Or(w.Declared.ReplaceAfter, graceOfNode)
}

// watched carries out a write of ours and notes what it has cost: no write of ours may cost the
// last good copy, nor copies that are needed.
func (w *World) watched(name string, do func()) {
	before := w.footing()
	surplus := w.surplus()
	do()
	if w.goesWithData() {
		return // it is what git asks for
	}
	after := w.footing()
	for _, id := range slices.Sorted(maps.Keys(before)) {
		left, still := after[id]
		if what := before[id].lostTo(left, w.Declared.Replicas, surplus); still && what != "" {
			w.violate("%s: by our own write %s", name, what)
		}
	}
}

// IsLastCopy reports whether acknowledged data could no longer be had without the volume of an
// ordinal.
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

// surplus reports whether there are more members than declared, so that one of them is to go.
func (w *World) surplus() bool {
	r, _ := w.reachable()
	return r != nil && len(r.members) > w.Declared.Replicas
}

// lostTo says what is less afterwards than it may be. A member on a volume that somebody deletes
// may be given up while all others are there, one at a time; of one or two there is none to spare.
// Where there are more than declared, one goes.
func (s standing) lostTo(after standing, declared int, surplus bool) string {
	spare := 0
	if declared > 2 {
		spare = 1
	}
	switch {
	case s.whole && !after.whole:
		return "acknowledged data is lost"
	case after.safe < s.safe && after.safe < min(declared, s.safe) && !surplus:
		return fmt.Sprintf("voters on safe volumes fall from %d to %d of %d declared", s.safe, after.safe, declared)
	case after.copies < s.copies && after.copies < min(declared-spare, s.copies):
		return fmt.Sprintf("copies fall from %d to %d of %d declared", s.copies, after.copies, declared)
	}
	return ""
}

// judgeDone notes a Done that is said of a cluster with a member on a volume that goes.
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
			w.violate("%s is said while %s is on a volume that goes", d.Verdict, w.replicaName(m.ordinal))
		}
	}
}

// judgeDeletion notes that a volume is deleted whose data nobody has let go of: it is no member's
// that the members it voted with have removed.
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
	w.violate("the volume of %s is deleted, and no quorum of those it voted with has removed it", w.replicaName(n))
}
