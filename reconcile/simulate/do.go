package simulate

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// NoCrash lets an action complete.
const NoCrash = -1

// write is a request that changes something.
type write struct {
	name string
	do   func()
}

// Do executes an action, write by write, and returns the names of the writes. It dies after crashAfter writes, unless
// crashAfter is NoCrash. Like the real executor, it reads again everything that the action relies on, treats "already
// done" as success, and does not change objects that have changed since. A write whose response is lost is equivalent
// to a crash after the write.
func (w *World) Do(a decide.Action, crashAfter int) []string {
	var done []string
	for _, write := range w.writes(w.Observe(), a) {
		if len(done) == crashAfter {
			break
		}
		w.watched(write.name, write.do)
		done = append(done, write.name)
	}
	return done
}

func (w *World) writes(s decide.State, action decide.Action) []write {
	switch a := action.(type) {
	case decide.Bootstrap:
		if a.Adopts != 0 {
			return w.beginAdoption(s, a)
		}
		if s.Formed() {
			return nil
		}
		return w.applyAll(s, w.foundingToken())
	case decide.ApplyObjects:
		return append(w.applyAll(s, w.next("t")), w.unmark(s)...)
	case decide.RenewCertificates:
		return w.renewCertificates()
	case decide.Declare:
		return []write{w.apply(w.customResource(), decide.Record{})}
	case decide.Seal:
		if !s.Membership.Known || s.Membership.ClusterID != a.ClusterID {
			return nil
		}
		return w.seal(decide.SealedRecord(s, a, w.next("t")))
	case decide.StopPods:
		return w.stopPods()
	case decide.StopReplicas:
		return w.stopReplicas(s, a)
	case decide.StartRollout:
		return w.startRollout(a)
	case decide.DeleteObjects:
		return w.deleteObjects()
	case decide.RestartReplica:
		return w.restart(a)
	case decide.DeleteVolume:
		return w.deleteVolume(a)
	}
	return w.writesOfJobs(s, action)
}

// writesOfJobs returns the writes of an action that concerns a Job, or that changes etcd.
func (w *World) writesOfJobs(s decide.State, action decide.Action) []write {
	switch a := action.(type) {
	case decide.StartBackup:
		return w.startBackup(a)
	case decide.DiscardBackup:
		return w.discardBackup(a)
	case decide.StartRestore:
		return w.startRestore(a)
	case decide.StopRestore:
		return w.stopRestore(a)
	case decide.FinishRestore:
		return w.finishRestore(s, a)
	case decide.StartRecovery:
		return w.startRecovery(s, a)
	case decide.StopRecovery:
		return w.stopRecovery(a)
	case decide.FinishRecovery:
		return w.finishRecovery(s, a)
	}
	return w.changeEtcd(s, action)
}

// seal writes the record, and then opens the client Service unless a member may still bootstrap the cluster.
func (w *World) seal(record decide.Record) []write {
	if r := w.rafts[record.ClusterID]; r != nil && r.old {
		w.violate("cluster %s is sealed, although its data was on the volumes before the bootstrap", record.ClusterID)
	}
	writes := []write{w.apply(w.configMap(), record)}
	if w.exists(w.clientService()) && !w.objects[w.clientService()].leads && !record.Closed() {
		writes = append(writes, w.apply(w.clientService(), record))
	}
	return writes
}

// applyAll writes every object that is not up to date. If the custom resource is missing, all objects are written,
// because the new custom resource must own them.
func (w *World) applyAll(s decide.State, freshToken string) []write {
	var writes []write
	required := decide.RequiredRecord(s, freshToken)
	again := !w.exists(w.customResource())
	for _, name := range w.Objects() {
		if again || w.differs(name, required) != "" {
			writes = append(writes, w.apply(name, required))
		}
	}
	return writes
}

// renewCertificates writes only the Secrets whose certificates are about to expire.
func (w *World) renewCertificates() []write {
	var writes []write
	for _, name := range w.wornSecrets() {
		writes = append(writes, w.apply(name, w.record))
	}
	return writes
}

func (w *World) apply(name string, required decide.Record) write {
	return write{name, func() { w.write(name, required) }}
}

// goesWithData reports whether the spec requests deletion of the cluster with its volumes.
func (w *World) goesWithData() bool {
	return w.Declared.Lifecycle == decide.Deleted && w.Declared.Retention == decide.Delete
}

func (w *World) stopPods() []write {
	next := w.set
	next.replicas = 0
	needed := func(n int) bool {
		_, runs := w.pods[n]
		return runs && w.volumes[n].terminating && !w.saidLost(n)
	}
	if !w.exists(w.statefulSet()) || next == w.set ||
		!w.goesWithData() && slices.ContainsFunc(w.ordinals(), needed) {
		return nil
	}
	return []write{{w.statefulSet(), func() { w.setStatefulSet(next) }}}
}

// stopReplicas writes the record, and deletes the observed pods.
func (w *World) stopReplicas(s decide.State, a decide.StopReplicas) []write {
	for _, n := range a.Ordinals.List() {
		if r := s.Replica(n); w.volumes[n].uid != r.VolumeUID || w.volumes[n].lostCluster != a.LostCluster {
			return nil
		}
	}
	var writes []write
	if record := decide.StoppedRecord(s, a); !record.Equal(w.record) {
		writes = append(writes, w.apply(w.configMap(), record))
	}
	for _, n := range a.Ordinals.List() {
		if p, there := w.pods[n]; there && p.uid == s.Replica(n).PodUID && !p.terminating {
			writes = append(writes, write{"pod " + w.replicaName(n), func() {
				id := w.volumes[n].data.cluster
				if r := w.rafts[id]; r.serves() && !w.isNobodys(r) && !w.isLost(id) {
					w.violate("%s is stopped as a member of a lost cluster, but its cluster has quorum",
						w.replicaName(n))
				}
				w.KillPod(n)
			}})
		}
	}
	return writes
}

// startRollout changes only the template for new pods.
func (w *World) startRollout(a decide.StartRollout) []write {
	next := w.set
	next.version, next.hash, next.quota = a.Version, a.SpecHash, w.Declared.Quota
	if !w.exists(w.statefulSet()) || next == w.set {
		return nil
	}
	return []write{{w.statefulSet(), func() {
		w.judgeUpgrade(next.version)
		w.setStatefulSet(next)
	}}}
}

// deleteObjects deletes the remaining objects of a cluster except the custom resource. Jobs are deleted first, and the
// record is deleted last.
func (w *World) deleteObjects() []write {
	if w.Declared.Lifecycle != decide.Deleted || w.anyPod() {
		w.violate("objects of a running or requested cluster are deleted")
	}
	w.judgeLastBackup(w.record.ClusterID != 0, false)
	var writes []write
	if w.restores != nil {
		writes = append(writes, write{"delete " + w.restoreName(), w.DeleteRestore})
	}
	if w.recovers != nil {
		writes = append(writes, write{"delete " + w.recoveryName(), w.DeleteRecovery})
	}
	for _, name := range slices.Backward(w.remaining()) {
		writes = append(writes, write{"delete " + name, func() { w.Delete(name) }})
	}
	return writes
}

// restart deletes a pod. The other voters must have quorum. With fewer than three voters this is impossible, so all
// members must be up and the pod must be outdated.
func (w *World) restart(a decide.RestartReplica) []write {
	p, there := w.pods[a.Ordinal]
	if !there || p.uid != a.PodUID || p.terminating {
		return nil
	}
	return []write{{"pod " + w.replicaName(a.Ordinal), func() {
		r := w.rafts[w.volumes[a.Ordinal].data.cluster]
		served := r.serves() && !w.isNobodys(r)
		outdated := p.version != w.Declared.Version || p.hash != w.Declared.SpecHash
		alone := served && len(r.voters()) < 3 && len(r.up) == len(r.members) && outdated
		w.judgeRestart(a.Ordinal)
		w.KillPod(a.Ordinal)
		if served && !alone && !r.serves() {
			w.violate("%s is restarted, which loses quorum", w.replicaName(a.Ordinal))
		}
	}}}
}

func (w *World) deleteVolume(a decide.DeleteVolume) []write {
	if v, there := w.volumes[a.Ordinal]; !there || v.uid != a.VolumeUID || v.terminating {
		return nil
	}
	wholeCluster := w.goesWithData() && !w.anyPod()
	return []write{{"volume " + w.replicaName(a.Ordinal), func() {
		for id, r := range w.rafts {
			if r.byOrdinal(a.Ordinal) != nil && w.hasData(id) && !wholeCluster && !w.wasSplit(id) && !w.isNobodys(r) {
				w.violate("the volume of %s is deleted, but etcd still lists the member", w.replicaName(a.Ordinal))
			}
		}
		if !wholeCluster {
			w.judgeDeletion(a.Ordinal)
		}
		w.judgeLastBackup(wholeCluster && w.volumes[a.Ordinal].data.member != 0, false)
		v := w.volumes[a.Ordinal]
		v.givenUp = true
		w.volumes[a.Ordinal] = v
		w.DeleteVolume(a.Ordinal)
	}}}
}
