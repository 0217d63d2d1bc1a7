package simulate

import (
	"quorate.dev/quorate/reconcile/decide"
)

// KillPod deletes the pod of an ordinal; Kubernetes makes it anew.
func (w *World) KillPod(n int) {
	if p, there := w.pods[n]; there {
		p.terminating, p.up, p.ready = true, false, false
		w.pods[n] = p
		w.runEtcd()
	}
}

// LoseVolume takes away the volume of an ordinal, with the data on it, and its pod.
func (w *World) LoseVolume(n int) {
	w.forgive(n)
	delete(w.volumes, n)
	delete(w.pods, n)
	w.runEtcd()
}

// DeleteVolume deletes the claim of an ordinal. It stays until no pod uses it.
func (w *World) DeleteVolume(n int) {
	v, there := w.volumes[n]
	if !there {
		return
	}
	v.terminating = true
	w.volumes[n] = v
	if _, used := w.pods[n]; !used {
		w.forgive(n)
		delete(w.volumes, n)
	}
}

// forgive notes that a volume was lost before anybody could seal its member: what follows is nobody's decision.
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

// Delete deletes an object. What the custom resource owns goes with the next tick.
func (w *World) Delete(name string) {
	delete(w.objects, name)
	switch name {
	case w.customResource():
		w.applied, w.status = decide.Declared{}, 0
	case w.configMap():
		w.record = decide.Record{}
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
func (w *World) DeleteStatus() { w.status = 0 }

// PutBackRecord makes the record what it was before the cluster formed, as a backup of the ConfigMap would.
func (w *World) PutBackRecord() {
	if w.exists(w.configMap()) {
		w.record = decide.FoundingRecord(w.record.Token, len(w.record.Members))
		w.putBack = true
	}
}

// CutNetwork cuts etcd off from whoever observes it, or mends that.
func (w *World) CutNetwork(cut bool) { w.cut = cut }

// NodeDown takes down the node that runs the pod of an ordinal, or brings it back.
func (w *World) NodeDown(n int, down bool) {
	w.down[n] = down
	w.runPods()
	w.runEtcd()
	w.judgePods()
}
