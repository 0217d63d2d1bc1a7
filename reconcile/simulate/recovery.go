package simulate

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// recovery is the Job that creates a new cluster from the data of a lost cluster's member.
type recovery struct {
	decide.RecoveryJob
	owner string // the UID of the custom resource
	since time.Time
	wait  int // ticks
}

// recoveredIn and restoredInto distinguish the IDs of clusters created from a lost cluster, or from its backup, from
// the IDs of other clusters with the same token.
const (
	recoveredIn  = 600
	restoredInto = 1700
)

// into returns the ID of the cluster that the Job creates, or has created, in a volume.
func (j *recovery) into(v volume) decide.ID {
	if j.Into != 0 {
		return j.Into
	}
	kind := recoveredIn
	if j.From != "" {
		kind = restoredInto
	}
	return hash(v.token, kind+int(j.ClusterID%1000))
}

// RefuseRecoveries makes recovery Jobs fail, or lets them succeed again.
func (w *World) RefuseRecoveries(refused bool) { w.recoveriesFail = refused }

// DeleteRecovery deletes the recovery Job, manually or as Kubernetes does long after the Job has ended.
func (w *World) DeleteRecovery() { w.recovers = nil }

func (w *World) recoveryName() string { return "Job " + w.name + "-recovery" }

// saidLost reports whether the spec declares that the data of the slot's member is lost.
func (w *World) saidLost(n int) bool { return w.Declared.Recovery.Lost.Has(n) }

// startRecovery creates the volume if it is missing, and writes the record and then the Job.
func (w *World) startRecovery(s decide.State, a decide.StartRecovery) []write {
	order := w.Declared.Recovery
	ordered := a.Digest == order.Digest && a.Ordinal == order.Ordinal
	if w.recovers != nil || !ordered || w.anyPod() || w.set.replicas > 0 {
		return nil
	}
	uid := s.Replica(a.Ordinal).VolumeUID
	var writes []write
	if _, there := w.volumes[a.Ordinal]; !there && uid == "" && order.Backup != "" {
		uid = w.next("v")
		writes = append(writes, write{"PersistentVolumeClaim data-" + w.replicaName(a.Ordinal), func() {
			w.volumes[a.Ordinal] = volume{uid: uid, token: w.record.Token}
		}})
	}
	record := decide.RecoveringRecord(s, uid)
	if !w.record.Equal(record) {
		writes = append(writes, w.apply(w.configMap(), record))
	}
	writes = append(writes, w.markLost(s, record.Recovery)...)
	return append(writes, write{w.recoveryName(), func() {
		begun := w.record.Recovery
		if order.Word != "" && order.Word == w.voided {
			w.violate("a recovery is started for a void request")
		}
		w.recovers = &recovery{
			RecoveryJob: decide.RecoveryJob{ClusterID: begun.ClusterID, Ordinal: begun.Ordinal, From: order.Backup,
				VolumeJob: decide.VolumeJob{UID: w.next("j"), Digest: a.Digest, VolumeUID: begun.VolumeUID,
					Phase: decide.JobRuns}},
			owner: w.objects[w.customResource()].uid, since: w.now, wait: 1 + w.delay(2),
		}
	}})
}

func (w *World) stopRecovery(a decide.StopRecovery) []write {
	if w.recovers == nil || w.recovers.UID != a.JobUID {
		return nil
	}
	return []write{{w.recoveryName(), w.DeleteRecovery}}
}

func (w *World) finishRecovery(s decide.State, a decide.FinishRecovery) []write {
	if v := w.volumes[s.Record.Recovery.Ordinal]; v.uid != a.VolumeUID || v.terminating || w.anyPod() {
		return nil
	}
	return append(w.markLost(s, s.Record.Recovery), w.apply(w.configMap(), decide.RecoveredRecord(s, a)))
}

// markLost marks observed claims as claims of a lost cluster.
func (w *World) markLost(s decide.State, begun decide.RecordedRecovery) (writes []write) {
	for _, m := range s.RecoveryMarks(begun) {
		writes = append(writes, w.mark(m.Replica, m.Lost))
	}
	return writes
}

// unmark removes wrong marks.
func (w *World) unmark(s decide.State) (writes []write) {
	for _, r := range s.WrongMarks() {
		writes = append(writes, w.mark(r, 0))
	}
	return writes
}

func (w *World) mark(r decide.Replica, lost decide.ID) write {
	return write{"PersistentVolumeClaim data-" + w.replicaName(r.Ordinal), func() {
		if w.volumes[r.Ordinal].uid == r.VolumeUID {
			w.MarkClaim(r.Ordinal, lost)
		}
	}}
}

// MarkClaim marks a claim as a claim of a lost cluster, as passes and manual actions do. Zero removes the mark.
func (w *World) MarkClaim(n int, lost decide.ID) {
	w.changeVolume(n, func(v *volume) { v.lostCluster = lost })
}

// runRecovery advances the Job, which creates a new cluster from the member's data or a backup, unless the cluster
// already exists.
func (w *World) runRecovery() {
	j := w.recovers
	if j == nil || j.Phase != decide.JobRuns {
		return
	}
	if j.wait--; j.wait > 0 {
		return
	}
	v, there := w.volumes[j.Ordinal]
	if !there || v.uid != j.VolumeUID || v.stranded != "" {
		return // its pod is pending
	}
	if _, runs := w.pods[j.Ordinal]; runs {
		w.violate("%s is recovered while its pod exists", w.replicaName(j.Ordinal))
	}
	into := j.into(v)
	lost := w.rafts[v.data.cluster]
	switch m := (*member)(nil); {
	case v.data.cluster == into:
		w.endRecovery(into)
	case j.From != "":
		w.restoreInPlace(into)
	case lost == nil || w.announced(v.data.cluster) != j.ClusterID:
		j.Phase, j.Message = decide.JobFailed, "the data directory does not hold a member of that cluster"
	case w.recoveriesFail:
		if w.now.Sub(j.since) >= attemptsOfJob*TickLength {
			j.Phase, j.Message = decide.JobFailed, "the data directory cannot be read"
		}
	default:
		if m = lost.byID(v.data.member); m == nil || m.learner || !lost.formed {
			j.Phase, j.Message = decide.JobFailed, "the member is not a voter"
			return
		}
		w.judgeRecovery(v.data.cluster, lost, j.Ordinal)
		w.makeCluster(into, j.Ordinal)
		w.endRecovery(into)
	}
}

// endRecovery makes the Job report the cluster that it created.
func (w *World) endRecovery(into decide.ID) {
	j := w.recovers
	j.Phase, j.Into = decide.JobSucceeded, into
	if j.From != "" {
		j.Restored = "the backup " + j.From
	}
}

// restoreInPlace creates a new cluster from a backup once the store provides the backup. The volume must be empty or
// hold data of the lost cluster.
func (w *World) restoreInPlace(into decide.ID) {
	j := w.recovers
	v := w.volumes[j.Ordinal]
	switch key := w.lostKey(j.ClusterID); {
	case v.data.member != 0 && w.announced(v.data.cluster) != j.ClusterID:
		j.Phase, j.Message = decide.JobFailed, "the data directory holds a member of a different cluster"
	case w.storeGivesNothing:
		if w.now.Sub(j.since) >= attemptsOfJob*TickLength {
			j.Phase, j.Message = decide.JobFailed, "the store rejects the request"
		}
	default:
		if lost := w.rafts[key]; lost != nil {
			w.judgeRecovery(key, lost, -1)
		}
		w.restoreCluster(into, key, j.Ordinal)
		w.endRecovery(into)
	}
}

// lostKey returns the key of the formed cluster with the given ID that has not been replaced by recovery, or zero.
func (w *World) lostKey(id decide.ID) decide.ID {
	for _, key := range w.clusters() {
		if r := w.rafts[key]; w.announced(key) == id && r.formed && !w.isLost(key) {
			return key
		}
	}
	return 0
}

// restoreCluster creates a new cluster in a slot from a backup of a lost cluster.
func (w *World) restoreCluster(into, lost decide.ID, n int) {
	v := w.volumes[n]
	m := member{id: hash(v.uid, int(into%1000)), ordinal: n, named: true, ran: true}
	made := &raft{members: []member{m}, formed: true, recoveredFrom: lost}
	if r := w.rafts[lost]; r != nil {
		made.open, made.version = r.open, r.version
	}
	w.rafts[into] = made
	v.data = data{cluster: into, member: m.id, variant: 1}
	w.volumes[n] = v
}

// makeCluster creates a new cluster from the data in a slot.
func (w *World) makeCluster(into decide.ID, n int) {
	v := w.volumes[n]
	lost := w.rafts[v.data.cluster]
	m := member{id: hash(v.uid, int(into%1000)), ordinal: n, named: true, ran: true}
	w.rafts[into] = &raft{
		members: []member{m}, formed: true, open: lost.open, version: lost.version, acknowledged: v.data.index,
		recoveredFrom: v.data.cluster, splitFrom: v.data.cluster, splitAt: v.data.index, forcedOn: v.data.member,
	}
	v.data.cluster, v.data.member = into, m.id
	w.volumes[n] = v
}

// judgeRecovery records a violation if a new cluster is created although another member has data that was not declared
// lost. The new cluster is created from the survivor's data, or from a backup if survivor is negative.
func (w *World) judgeRecovery(id decide.ID, lost *raft, survivor int) {
	for _, m := range lost.voters() {
		left := w.volumes[m.ordinal].data
		has := left.cluster == id && left.member == m.id && w.stays(m.ordinal)
		if m.ordinal != survivor && has && !w.saidLost(m.ordinal) {
			w.violate("a new cluster is created although %s still has its data", w.replicaName(m.ordinal))
		}
	}
}

// judgeVoid remembers a recovery request that a pass found while the cluster had quorum. Such a request is void. If the
// spec no longer contains the request, it is forgotten.
func (w *World) judgeVoid(s decide.State) {
	switch order := s.Declared.Recovery; {
	case order.ClusterID == 0:
		w.voided = ""
	case s.Membership.Known && s.Membership.ClusterID == order.ClusterID && !s.Record.Recovering():
		w.voided = order.Word
	}
}

// isLost reports whether recovery has replaced the cluster with a new cluster.
func (w *World) isLost(id decide.ID) bool {
	for _, r := range w.rafts {
		if r.recoveredFrom == id && id != 0 {
			return true
		}
	}
	return false
}

// seenRecovery returns the recovery Job as a pass observes it.
func (w *World) seenRecovery() (seen decide.Recovery) {
	if w.recovers != nil {
		job := w.recovers.RecoveryJob
		seen.Job = &job
	}
	return seen
}

// fromRecovery adds the observed Job and the cluster that it has created.
func (w *World) fromRecovery(s decide.State) {
	j := s.Recovery.Job
	if j == nil {
		return
	}
	w.recovers = &recovery{RecoveryJob: *j, owner: w.objects[w.customResource()].uid, since: s.Now, wait: 1}
	v := w.volumes[j.Ordinal]
	if created := idOf(s) != j.ClusterID; created || j.Phase != decide.JobSucceeded || v.uid != j.VolumeUID {
		return
	}
	switch into := w.recovers.into(v); {
	case j.From != "":
		w.restoreCluster(into, w.lostKey(j.ClusterID), j.Ordinal)
	case w.rafts[v.data.cluster] != nil:
		w.makeCluster(into, j.Ordinal)
	}
}
