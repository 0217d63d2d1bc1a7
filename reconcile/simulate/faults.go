package simulate

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// KillPod deletes the pod of an ordinal; Kubernetes recreates it.
func (w *World) KillPod(n int) {
	if p, there := w.pods[n]; there {
		w.pods[n] = p.stopping(w.now)
		w.runEtcd()
	}
}

// ForceDelete deletes a pod whose node is down, without waiting for the node to confirm that the pod has ended.
func (w *World) ForceDelete(n int) {
	if w.down[n] {
		delete(w.pods, n)
		w.runEtcd()
	}
}

// Crash makes etcd in the pod of an ordinal exit once; etcd restarts with the next tick.
func (w *World) Crash(n int) {
	if p, there := w.pods[n]; there && p.up {
		w.pods[n] = p.crashed("panic: assertion failed")
		w.runEtcd()
		w.judgePods()
	}
}

// LoseVolume deletes the pod of an ordinal, and its volume with the data.
func (w *World) LoseVolume(n int) {
	w.forgive(n)
	delete(w.volumes, n)
	delete(w.pods, n)
	w.runEtcd()
}

// ReplaceClaim deletes the claim of an ordinal and its volume just after a new pod has been assigned to a node. If the
// StatefulSet exists, the claim is recreated, but the pod and the claim then wait for each other forever.
func (w *World) ReplaceClaim(n int) {
	if _, there := w.pods[n]; !there {
		return
	}
	w.LoseVolume(n)
	if !w.exists(w.statefulSet()) {
		return
	}
	w.makeReplica(n)
	if p, there := w.pods[n]; there {
		p.unbound = true
		w.pods[n] = p
	}
}

// RecreateClaim replaces the claim of an ordinal with a new claim of the same name while etcd runs on the volume of the
// old claim. The old volume is deleted with the pod.
func (w *World) RecreateClaim(n int) {
	if p, v := w.pods[n], w.volumes[n]; p.up && v.uid != "" {
		v.detached, v.terminating = true, true
		w.volumes[n] = v
	}
}

// DeleteVolume deletes the claim of an ordinal. The claim is kept while a pod uses it.
func (w *World) DeleteVolume(n int) {
	if v, there := w.volumes[n]; there {
		v.terminating = true
		w.volumes[n] = v
		w.releaseVolume(n)
	}
}

// Strand permanently removes the node of an ordinal. The volume cannot be used on other nodes.
func (w *World) Strand(n int) {
	if v, there := w.volumes[n]; there && v.stranded == "" {
		v.stranded, v.strandedAt = "its node is gone", w.now
		w.volumes[n] = v
		delete(w.pods, n)
		delete(w.down, n)
		w.runEtcd()
	}
}

// Corrupt damages the data of an ordinal: etcd exits and cannot start with that data again.
func (w *World) Corrupt(n int) {
	v := w.volumes[n]
	if v.data.member == 0 {
		return
	}
	v.data.corrupt = true
	w.volumes[n] = v
	if p, there := w.pods[n]; there && p.up {
		w.pods[n] = p.crashed("panic: freelist: page 1437 already freed")
	}
	w.runEtcd()
	w.judgePods()
}

// Hang makes I/O on the volume of an ordinal hang, so that its pod runs but does not respond, or makes I/O work again.
func (w *World) Hang(n int, hung bool) {
	if v, there := w.volumes[n]; there {
		v.hung = hung
		w.volumes[n] = v
		w.runEtcd()
		w.judgePods()
	}
}

// forgive records that a volume was lost before its member could be sealed, so that the consequences do not count as
// violations.
func (w *World) forgive(n int) {
	file, _ := w.record.Member(n)
	r := w.rafts[w.volumes[n].data.cluster]
	if r == nil || file.Mode == decide.Sealed {
		return
	}
	if m := r.byID(w.volumes[n].data.member); m != nil {
		m.heldBack = true
	}
}

// LeaveOldData makes the next volume of an ordinal hold data of a different cluster with the same name, as a reused NFS
// or local-path volume may do.
func (w *World) LeaveOldData(n int) {
	id := hash("old", 0)
	if w.rafts[id] == nil {
		w.rafts[id] = &raft{old: true, formed: true}
	}
	if r := w.rafts[id]; r.byOrdinal(n) == nil {
		r.members = append(r.members,
			member{id: hash("old", 1000+n), ordinal: n, named: true, ran: true, started: true})
		w.oldData[n] = true
	}
}

// dataBefore returns the data on a new volume of an ordinal. The data is zero unless LeaveOldData was called.
func (w *World) dataBefore(n int) data {
	if !w.oldData[n] {
		return data{}
	}
	delete(w.oldData, n)
	minor := minorOf(w.set.version)
	return data{cluster: hash("old", 0), member: hash("old", 1000+n), index: 1, version: minor, storage: minor,
		wrote: minor}
}

// Delete deletes an object. If it is the custom resource, the objects that it owns are deleted with the next tick.
func (w *World) Delete(name string) {
	delete(w.objects, name)
	switch name {
	case w.customResource():
		w.applied, w.status = decide.Declared{}, status{silent: map[decide.ID]time.Time{}}
	case w.configMap():
		w.record, w.initial = decide.Record{}, nil
	case w.statefulSet():
		w.set = statefulSet{}
	}
}

// Change changes an object manually.
func (w *World) Change(name string) {
	if o, there := w.objects[name]; there {
		o.changed = true
		w.objects[name] = o
	}
}

// Occupy replaces an object with an unmanaged object of the same name.
func (w *World) Occupy(name string) { w.objects[name] = object{uid: w.next("u"), foreign: true} }

// DeleteStatus empties the status of the custom resource.
func (w *World) DeleteStatus() { w.status = status{silent: map[decide.ID]time.Time{}} }

// PutBackRecord reverts the record to its state before the cluster formed, as a restored backup of the ConfigMap does.
func (w *World) PutBackRecord() {
	if w.exists(w.configMap()) {
		w.record = decide.FoundingRecord(w.record.Token, w.foundedWith)
		if w.foundedWith == 0 { // the cluster was created from a backup
			w.record = decide.RestoringRecord(w.record.Token)
		}
		w.putBack = true
	}
}

// CutNetwork cuts the connection between Quorate and etcd, or restores it.
func (w *World) CutNetwork(cut bool) { w.cut = cut }

// Mute cuts only the connection between Quorate and one member, or restores it.
func (w *World) Mute(n int, mute bool) { w.mute[n] = mute }

// Slow makes a member fall behind, or lets it catch up again.
func (w *World) Slow(n int, slow bool) { w.slow[n] = slow }

// NodeDown takes down the node that runs the pod of an ordinal, or brings it back.
func (w *World) NodeDown(n int, down bool) {
	w.down[n] = down
	w.runPods()
	w.runEtcd()
	w.judgePods()
}

// Apart cuts only the connections between one member and the other members, or restores them.
func (w *World) Apart(n int, apart bool) {
	w.apart[n] = apart
	w.runEtcd()
	w.judgePods()
}

// Unready makes a pod unready although its etcd serves, or lets it become ready again.
func (w *World) Unready(n int, unready bool) {
	w.unready[n] = unready
	w.judgePods()
}
