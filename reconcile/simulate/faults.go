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

// ForceDelete takes a pod away whose node does not say that it has ended, as somebody does who knows that
// the machine is off.
func (w *World) ForceDelete(n int) {
	if w.down[n] {
		delete(w.pods, n)
		w.runEtcd()
	}
}

// Crash ends etcd in the pod of an ordinal once; it is started again with the next tick.
func (w *World) Crash(n int) {
	if p, there := w.pods[n]; there && p.up {
		w.pods[n] = p.crashed("panic: assertion failed")
		w.runEtcd()
		w.judgePods()
	}
}

// LoseVolume takes away the volume of an ordinal, with the data on it, and its pod.
func (w *World) LoseVolume(n int) {
	w.forgive(n)
	delete(w.volumes, n)
	delete(w.pods, n)
	w.runEtcd()
}

// ReplaceClaim takes away the claim of an ordinal, with its volume, just when a new pod has been
// given its node: the claim is recreated, and pod and claim wait for each other forever. Without
// its StatefulSet nobody recreates it.
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

// RecreateClaim takes away the claim of an ordinal, and another one is created under its name, while etcd runs on the
// volume of the first one. That volume goes with the pod.
func (w *World) RecreateClaim(n int) {
	if p, v := w.pods[n], w.volumes[n]; p.up && v.uid != "" {
		v.detached, v.terminating = true, true
		w.volumes[n] = v
	}
}

// DeleteVolume deletes the claim of an ordinal. It stays until no pod uses it.
func (w *World) DeleteVolume(n int) {
	if v, there := w.volumes[n]; there {
		v.terminating = true
		w.volumes[n] = v
		w.releaseVolume(n)
	}
}

// Strand takes away the node of an ordinal for good. No other node can use its volume.
func (w *World) Strand(n int) {
	if v, there := w.volumes[n]; there && v.stranded == "" {
		v.stranded, v.strandedAt = "its node is gone", w.now
		w.volumes[n] = v
		delete(w.pods, n)
		delete(w.down, n)
		w.runEtcd()
	}
}

// Corrupt spoils the data of an ordinal: etcd ends, and does not start on it again.
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

// Hang makes whoever uses the volume of an ordinal hang: its pod runs and nothing answers. Or it
// mends that.
func (w *World) Hang(n int, hung bool) {
	if v, there := w.volumes[n]; there {
		v.hung = hung
		w.volumes[n] = v
		w.runEtcd()
		w.judgePods()
	}
}

// forgive notes that a volume was lost before anybody could seal its member: what follows is
// nobody's decision.
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

// LeaveOldData has the next volume of an ordinal hold data of another cluster of that name, as a volume of NFS or of
// local-path does that is handed out again.
func (w *World) LeaveOldData(n int) {
	id := hash("old", 0)
	if w.rafts[id] == nil {
		w.rafts[id] = &raft{old: true, formed: true}
	}
	if r := w.rafts[id]; r.byOrdinal(n) == nil {
		r.members = append(r.members, member{id: hash("old", 1000+n), ordinal: n, named: true, ran: true, started: true})
		w.oldData[n] = true
	}
}

// dataBefore is what a new volume of an ordinal holds.
func (w *World) dataBefore(n int) data {
	if !w.oldData[n] {
		return data{}
	}
	delete(w.oldData, n)
	minor := minorOf(w.set.version)
	return data{cluster: hash("old", 0), member: hash("old", 1000+n), index: 1, version: minor, storage: minor,
		wrote: minor}
}

// Delete deletes an object. What the custom resource owns goes with the next tick.
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

// Change changes an object by hand.
func (w *World) Change(name string) {
	if o, there := w.objects[name]; there {
		o.changed = true
		w.objects[name] = o
	}
}

// Occupy puts an object of somebody else in the place of one of ours.
func (w *World) Occupy(name string) { w.objects[name] = object{uid: w.next("u"), foreign: true} }

// DeleteStatus empties the status of the custom resource.
func (w *World) DeleteStatus() { w.status = status{silent: map[decide.ID]time.Time{}} }

// PutBackRecord makes the record what it was before the cluster formed, as a backup of the
// ConfigMap would.
func (w *World) PutBackRecord() {
	if w.exists(w.configMap()) {
		w.record = decide.FoundingRecord(w.record.Token, w.foundedWith)
		if w.foundedWith == 0 { // it was made from a backup
			w.record = decide.RestoringRecord(w.record.Token)
		}
		w.putBack = true
	}
}

// CutNetwork cuts etcd off from whoever observes it, or mends that.
func (w *World) CutNetwork(cut bool) { w.cut = cut }

// Mute cuts one member off from whoever observes it, and from nobody else, or mends that.
func (w *World) Mute(n int, mute bool) { w.mute[n] = mute }

// Slow lets a member fall behind, or catch up again.
func (w *World) Slow(n int, slow bool) { w.slow[n] = slow }

// NodeDown takes down the node that runs the pod of an ordinal, or brings it back.
func (w *World) NodeDown(n int, down bool) {
	w.down[n] = down
	w.runPods()
	w.runEtcd()
	w.judgePods()
}

// Apart cuts one member off from all others and from nobody else, or mends that.
func (w *World) Apart(n int, apart bool) {
	w.apart[n] = apart
	w.runEtcd()
	w.judgePods()
}

// Unready has a node find a pod unwell whose etcd serves, or mends that.
func (w *World) Unready(n int, unready bool) {
	w.unready[n] = unready
	w.judgePods()
}
