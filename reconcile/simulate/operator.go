package simulate

import (
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// This file contains manual actions with kubectl and etcdctl. Other manual actions are in faults.go and
// interventions.go.

// DeleteOrphaning deletes an object but not the objects that it owns, as kubectl delete --cascade=orphan does.
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

// Scale scales the StatefulSet manually.
func (w *World) Scale(replicas int) {
	if w.exists(w.statefulSet()) {
		w.set.replicas = replicas
	}
}

// DisownClaim removes the label that assigns the claim of an ordinal to its cluster, or restores it.
func (w *World) DisownClaim(n int, disowned bool) {
	w.changeVolume(n, func(v *volume) { v.disowned = disowned })
}

// UnlistClaim changes the label that passes use to list the claim of an ordinal, or restores it.
func (w *World) UnlistClaim(n int, unlisted bool) {
	w.changeVolume(n, func(v *volume) { v.unlisted = unlisted })
}

// UnlistPod is like UnlistClaim, for a pod.
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

// RegisterNode brings back a deleted node and the volume of an ordinal on the node, if the volume still exists.
func (w *World) RegisterNode(n int) {
	w.changeVolume(n, func(v *volume) { v.stranded = "" })
}

// PromoteMember manually promotes the learner of an ordinal, as etcdctl does, if etcd allows it.
func (w *World) PromoteMember(n int) {
	for _, id := range w.clusters() {
		r := w.rafts[id]
		if m := r.byOrdinal(n); m != nil && m.learner && r.serves() && w.indexOf(*m)*10 >= w.lastIndex(r)*9 {
			before := len(w.violations)
			w.promote(r, m)
			w.violations = w.violations[:before] // a manual promotion is not a violation
		}
	}
}

// ForceNewCluster starts the member of an ordinal once with --force-new-cluster, as a cluster of one member with the
// same ID and data. The other members exit as soon as they contact it. They keep their data and their old member list.
func (w *World) ForceNewCluster(n int) {
	v := w.volumes[n]
	old := w.rafts[v.data.cluster]
	if old == nil || v.data.corrupt || !old.formed || old.byID(v.data.member) == nil {
		return
	}
	if old.byID(v.data.member).learner && w.wasSplit(v.data.cluster) {
		return // keep the data of the other new cluster, which comes from a voter
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

// announced returns the ID that a cluster reports. A cluster created with --force-new-cluster reports the ID of its
// former cluster.
func (w *World) announced(id decide.ID) decide.ID {
	if r := w.rafts[id]; r != nil && r.announced != 0 {
		return r.announced
	}
	return id
}

// meetsForced reports whether members of a cluster contact a running member that --force-new-cluster has split off.
func (w *World) meetsForced(id decide.ID) bool {
	for _, other := range w.clusters() {
		r := w.rafts[other]
		if r.splitFrom != id || r.recoveredFrom != 0 || w.rafts[id].byID(r.forcedOn) == nil {
			continue // members do not contact a cluster with a different ID, or a removed member
		}
		for n, v := range w.volumes {
			if v.data.cluster == other && w.pods[n].up && !v.hung {
				return true
			}
		}
	}
	return false
}

// anyForced reports whether a cluster was split off and data of its former cluster still exists.
func (w *World) anyForced() bool {
	for _, r := range w.rafts {
		if r.splitFrom != 0 && w.hasData(r.splitFrom) {
			return true
		}
	}
	return false
}

// clusters returns the keys of all etcd clusters in a stable order.
func (w *World) clusters() []decide.ID { return slices.Sorted(maps.Keys(w.rafts)) }

// healLabels restores manually changed labels.
func (w *World) healLabels() {
	for n := range w.volumes {
		w.UnlistClaim(n, false)
		w.DisownClaim(n, false)
	}
	for n := range w.pods {
		w.UnlistPod(n, false)
	}
}

// wasSplit reports whether a different cluster was split off from the given cluster. The member list of the given
// cluster is then obsolete.
func (w *World) wasSplit(id decide.ID) bool {
	for _, r := range w.rafts {
		if r.splitFrom == id {
			return true
		}
	}
	return false
}

// isNobodys reports whether a cluster was split off from a cluster that has since removed the member. The cluster that
// was split off is then obsolete.
func (w *World) isNobodys(r *raft) bool {
	from := w.rafts[r.splitFrom]
	return from != nil && from.byID(r.forcedOn) == nil
}
