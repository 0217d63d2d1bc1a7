package simulate

import (
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// What a person does with kubectl and etcdctl, beside what faults.go and interventions.go have.

// DeleteOrphaning deletes an object and leaves what it owns: kubectl delete --cascade=orphan.
func (w *World) DeleteOrphaning(name string) {
	switch name {
	case w.customResource():
		for other, o := range w.objects {
			o.owner = ""
			w.objects[other] = o
		}
	case w.statefulSet():
		w.letGo = w.exists(name)
	}
	w.Delete(name)
}

// Scale scales the StatefulSet by hand.
func (w *World) Scale(replicas int) {
	if w.exists(w.statefulSet()) {
		w.set.replicas = replicas
	}
}

// DisownClaim takes the label off the claim of an ordinal that says which cluster it belongs to, or
// puts it back.
func (w *World) DisownClaim(n int, disowned bool) {
	w.changeVolume(n, func(v *volume) { v.disowned = disowned })
}

// UnlistClaim changes the label of the claim of an ordinal by which all that is managed is listed,
// or puts it back.
func (w *World) UnlistClaim(n int, unlisted bool) {
	w.changeVolume(n, func(v *volume) { v.unlisted = unlisted })
}

// UnlistPod does so with a pod.
func (w *World) UnlistPod(n int, unlisted bool) {
	if p, there := w.pods[n]; there {
		p.unlisted = unlisted
		w.pods[n] = p
	}
}

func (w *World) changeVolume(n int, change func(*volume)) {
	if v, there := w.volumes[n]; there {
		change(&v)
		w.volumes[n] = v
	}
}

// RegisterNode brings back a node that was deleted, with the volume of an ordinal on it, if that is
// still there.
func (w *World) RegisterNode(n int) {
	w.changeVolume(n, func(v *volume) { v.stranded = "" })
}

// PromoteMember gives the learner of an ordinal a vote, as etcdctl does, if etcd lets it.
func (w *World) PromoteMember(n int) {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		if m := r.byOrdinal(n); m != nil && m.learner && r.serves() && w.indexOf(*m)*10 >= w.lastIndex(r)*9 {
			before := len(w.violations)
			w.promote(r, m)
			w.violations = w.violations[:before] // it is nobody's decision
		}
	}
}

// ForceNewCluster starts the member of an ordinal once with --force-new-cluster: a cluster of one
// with the same ID and the same data. The others end as soon as they meet it; their data stay, with
// the list that they had.
func (w *World) ForceNewCluster(n int) {
	v := w.volumes[n]
	old := w.rafts[v.data.cluster]
	if old == nil || v.data.corrupt || !old.formed || old.byID(v.data.member) == nil {
		return
	}
	forced := member{id: v.data.member, ordinal: n, named: true, ran: true, started: true}
	split := &raft{
		members: []member{forced}, formed: true, version: old.version, acknowledged: v.data.index,
		announced: w.announced(v.data.cluster), splitFrom: v.data.cluster, splitAt: v.data.index, forcedOn: forced.id,
	}
	split.removed = slices.DeleteFunc(slices.Concat(old.ids(), old.removed),
		func(id decide.ID) bool { return id == forced.id })
	old.byID(forced.id).forced = true
	v.data.cluster = hash(w.next("f"), n)
	w.rafts[v.data.cluster] = split
	w.volumes[n] = v
	w.KillPod(n)
	w.judgePods()
}

// announced is the ID that a cluster says it has. One that was split off says that of the cluster
// it was.
func (w *World) announced(id decide.ID) decide.ID {
	if r := w.rafts[id]; r != nil && r.announced != 0 {
		return r.announced
	}
	return id
}

// meetsForced reports whether a member of that cluster meets one that was forced out of it, and
// that has removed all others.
func (w *World) meetsForced(id decide.ID) bool {
	for _, other := range w.clusters() {
		r := w.rafts[other]
		if r.splitFrom != id || r.recoveredFrom != 0 || w.rafts[id].byID(r.forcedOn) == nil {
			continue // it has another ID, or it was removed: nobody goes to it
		}
		for n, v := range w.volumes {
			if v.data.cluster == other && w.pods[n].up && !v.hung {
				return true
			}
		}
	}
	return false
}

// anyForced reports whether a cluster was split off and others' data are still there.
func (w *World) anyForced() bool {
	for _, r := range w.rafts {
		if r.splitFrom != 0 && w.hasData(r.splitFrom) {
			return true
		}
	}
	return false
}

// clusters are the keys of all clusters of etcd, in a stable order.
func (w *World) clusters() []decide.ID { return slices.Sorted(maps.Keys(w.rafts)) }

// healLabels puts back the labels that somebody has changed.
func (w *World) healLabels() {
	for n := range w.volumes {
		w.UnlistClaim(n, false)
		w.DisownClaim(n, false)
	}
	for n := range w.pods {
		w.UnlistPod(n, false)
	}
}

// wasSplit reports whether a cluster was forced out of that one, so that its list is nobody's any
// more.
func (w *World) wasSplit(id decide.ID) bool {
	for _, r := range w.rafts {
		if r.splitFrom == id {
			return true
		}
	}
	return false
}

// isNobodys reports whether a cluster was forced out of one that has removed its member since:
// whoever did both wants one of them.
func (w *World) isNobodys(r *raft) bool {
	from := w.rafts[r.splitFrom]
	return from != nil && from.byID(r.forcedOn) == nil
}
