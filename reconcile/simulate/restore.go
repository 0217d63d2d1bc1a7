package simulate

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// restore is the Job that fills the volume of the first member, and its result.
type restore struct {
	decide.RestoreJob
	owner string // the UID of the custom resource
	since time.Time
	wait  int // ticks
}

// restoredIn distinguishes the ID of a restored cluster from the ID of a cluster bootstrapped with the same token.
const restoredIn = 500

// restoredRevision is the revision at which etcd starts with restored data.
const restoredRevision = 1000

// StartElsewhere makes etcd run with data older than the restored data, as if a storage driver returned a stale copy of
// the volume.
func (w *World) StartElsewhere() { w.startsElsewhere = true }

// RefuseRestores makes the store refuse all reads, or allow them again.
func (w *World) RefuseRestores(refused bool) { w.storeGivesNothing = refused }

// DeleteRestore deletes the restore Job, manually or as Kubernetes does long after the Job has ended.
func (w *World) DeleteRestore() { w.restores = nil }

func (w *World) restoreName() string { return "Job " + w.name + "-restore" }

// startRestore creates the volume if it is missing, and then the Job.
func (w *World) startRestore(a decide.StartRestore) []write {
	if w.restores != nil || a.Digest != w.Declared.Restore.Digest || !w.record.Restoring() {
		return nil
	}
	var writes []write
	if _, there := w.volumes[0]; !there {
		writes = append(writes, write{"PersistentVolumeClaim data-" + w.replicaName(0), func() {
			w.volumes[0] = volume{uid: w.next("v"), token: w.record.Token}
		}})
	}
	return append(writes, write{w.restoreName(), func() {
		from := w.Declared.Restore
		w.restores = &restore{
			RestoreJob: decide.RestoreJob{From: from.From, VolumeJob: decide.VolumeJob{UID: w.next("j"),
				Digest: from.Digest, VolumeUID: w.volumes[0].uid, Phase: decide.JobRuns}},
			owner: w.objects[w.customResource()].uid, since: w.now, wait: 1 + w.delay(2),
		}
	}})
}

func (w *World) stopRestore(a decide.StopRestore) []write {
	if w.restores == nil || w.restores.UID != a.JobUID {
		return nil
	}
	return []write{{w.restoreName(), w.DeleteRestore}}
}

func (w *World) finishRestore(s decide.State, a decide.FinishRestore) []write {
	if v := w.volumes[0]; v.uid != a.VolumeUID || v.terminating {
		return nil
	}
	return []write{w.apply(w.configMap(), decide.RestoredRecord(s, a))}
}

// runRestore advances the Job, which fills an empty volume once the store provides the backup. If the volume holds the
// restored member, the Job succeeds. If the volume holds a different member, the Job fails.
func (w *World) runRestore() {
	j := w.restores
	if j == nil || j.Phase != decide.JobRuns {
		return
	}
	if j.wait--; j.wait > 0 {
		return
	}
	v, there := w.volumes[0]
	if !there || v.uid != j.VolumeUID {
		return // its pod is pending
	}
	if _, runs := w.pods[0]; runs && v.data.member == 0 {
		w.violate("%s is restored while its pod exists", w.replicaName(0))
	}
	d := data{cluster: hash(v.token, restoredIn), member: hash(v.token, restoredIn+1), variant: 1}
	j.Data = decide.RestoredData{ClusterID: d.cluster, MemberID: d.member, Revision: restoredRevision}
	switch {
	case v.data.member != 0 && (v.data.cluster != d.cluster || v.data.member != d.member):
		j.Phase, j.Message = decide.JobFailed, "the data directory is not empty"
	case v.data.member != 0:
		j.Phase = decide.JobSucceeded
	case !w.storeGivesNothing:
		v.data, j.Phase = d, decide.JobSucceeded
		w.volumes[0] = v
		w.rafts[d.cluster] = &raft{members: []member{{id: d.member, named: true}}}
	case w.now.Sub(j.since) >= attemptsOfJob*TickLength:
		j.Phase, j.Message = decide.JobFailed, "the store rejects the request"
	}
}

// seenRestore returns the restore Job as a pass observes it.
func (w *World) seenRestore() (seen decide.Restore) {
	if w.restores != nil && (w.record.Restoring() || !w.exists(w.configMap()) || w.volumes[0].terminating) {
		job := w.restores.RestoreJob
		seen.Job = &job
	}
	return seen
}

// fromRestore adds the observed Job and the data that it has restored.
func (w *World) fromRestore(s decide.State) {
	if s.Restore.Job != nil {
		owner := w.objects[w.customResource()].uid
		w.restores = &restore{RestoreJob: *s.Restore.Job, owner: owner, since: s.Now, wait: 1}
		unused := w.record.Restoring() || !w.exists(w.configMap())
		if v := w.volumes[0]; unused && s.Restore.Job.Phase == decide.JobSucceeded && v.uid == s.Restore.Job.VolumeUID {
			w.restores.Phase = decide.JobRuns
			w.runRestore()
		}
	}
}
