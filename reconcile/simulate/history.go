package simulate

import (
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// moment is the state of Kubernetes and etcd's membership at the end of a tick. It is never changed.
type moment struct {
	objects map[string]object
	applied decide.Declared
	status  status
	record  decide.Record
	initial []decide.ID
	set     statefulSet
	pods    map[int]pod
	volumes map[int]volume
	letGo   bool
	backups backups
	says    decide.Membership
}

// Remember makes the world keep the given number of moments, one per tick, so that they can be observed or restored.
func (w *World) Remember(moments int) { w.memory = moments }

func (w *World) remember() {
	if w.memory == 0 {
		return
	}
	if len(w.past) == w.memory {
		w.past = slices.Clone(w.past[1:])
	}
	w.past = append(w.past, moment{
		objects: maps.Clone(w.objects), applied: w.applied, status: w.status, record: w.record,
		initial: w.initial, set: w.set,
		pods: maps.Clone(w.pods), volumes: maps.Clone(w.volumes), letGo: w.letGo, says: w.membership(),
		backups: backups{jobs: slices.Clone(w.backups.jobs), generation: w.backups.generation,
			declaredAt: w.backups.declaredAt, deletedAt: w.backups.deletedAt},
	})
}

// ago returns the moment the given number of ticks ago, or the oldest kept moment. It returns false if none is kept.
func (w *World) ago(ticks int) (moment, bool) {
	if len(w.past) == 0 {
		return moment{}, false
	}
	return w.past[max(0, len(w.past)-max(1, ticks))], true
}

// Restore reverts the API server to its state the given number of ticks ago, as a restored backup does. Nodes, disks
// and etcd do not change. Pods that are missing from the backup are stopped, and pods that exist only in the backup are
// started. The data of claims that are missing from the backup is unreachable, and the data of claims deleted since the
// backup is gone.
func (w *World) Restore(ticks int) {
	then, kept := w.ago(ticks)
	if !kept {
		return
	}
	now := w.volumes
	w.objects, w.applied, w.status, w.set = maps.Clone(then.objects), then.applied, then.status, then.set
	w.status.silent = maps.Clone(then.status.silent)
	w.record, w.initial, w.letGo = then.record, slices.Clone(then.initial), then.letGo
	w.backups.jobs = slices.Clone(then.backups.jobs)
	w.backups.generation = then.backups.generation
	w.backups.declaredAt, w.backups.deletedAt = then.backups.declaredAt, then.backups.deletedAt
	w.putBack = w.putBack || w.record.MayFound()
	w.volumes = map[int]volume{}
	for n, v := range then.volumes {
		if current, there := now[n]; there && current.uid == v.uid {
			v.data, v.hung, v.stranded = current.data, current.hung, current.stranded
		} else {
			v.data, v.stranded, v.strandedAt = data{}, "its volume is gone", w.now
		}
		v.givenUp = false
		w.volumes[n] = v
	}
	w.restorePods(then.pods)
	w.runEtcd()
	w.judgePods()
}

// restorePods makes kubelets run the restored pods: pods that are still running continue, and all other pods are
// started.
func (w *World) restorePods(then map[int]pod) {
	now := w.pods
	w.pods = map[int]pod{}
	for n, p := range then {
		current, there := now[n]
		if holds := w.volumes[n].stranded == ""; there && holds && current.uid == p.uid && !current.terminating {
			w.pods[n] = current
			continue
		}
		p.up, p.ready, p.terminating, p.since, p.wait = false, false, false, w.now, 1
		w.pods[n] = p
	}
}

// RestoreObject reverts one object to its state the given number of ticks ago.
func (w *World) RestoreObject(name string, ticks int) {
	then, kept := w.ago(ticks)
	o, there := then.objects[name]
	if !kept || !there || o.foreign {
		return
	}
	if current, stays := w.objects[name]; stays {
		o.uid = current.uid
	} else {
		o.uid = w.next("u")
	}
	switch name {
	case w.customResource():
		w.applied, w.status = then.applied, then.status
		w.status.silent = maps.Clone(then.status.silent)
	case w.configMap():
		w.record, w.initial = then.record, slices.Clone(then.initial)
		w.putBack = w.putBack || w.record.MayFound()
	case w.statefulSet():
		w.set = then.set
	}
	w.objects[name] = o
}
